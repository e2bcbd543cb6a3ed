#include "store/part_json.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_object.hpp"

namespace ergometer {
namespace {

using Json = nlohmann::ordered_json;
using Method = ClockLink::Method;

constexpr std::array<std::pair<Method, const char*>, 3> kMethods{
    {{Method::same, "same"}, {Method::exchange, "exchange"}, {Method::wall, "wall"}}};

Json part_integer(std::optional<int> value) { return value ? Json(*value) : Json(nullptr); }
Json part_time(std::optional<MonoTime> t) { return t ? Json(to_ns(*t)) : Json(nullptr); }

Json place_to_json(const Place& p) {
  return {{"node", p.node},
          {"aliases", p.aliases},
          {"hostname", p.hostname},
          {"boot_id", p.boot_id},
          {"time_namespace", p.time_namespace},
          {"host_root", p.host_root},
          {"launcher", p.launcher},
          {"run_key", p.run_key},
          {"job", p.job},
          {"step", p.step},
          {"job_user", p.job_user},
          {"container", p.container},
          {"cgroup", p.cgroup},
          {"world_size", part_integer(p.world_size)}};
}

Place read_place(JsonObject& o) {
  Place p;
  o.read("node", p.node);
  o.read("aliases", p.aliases);
  o.read("hostname", p.hostname);
  o.read("boot_id", p.boot_id);
  o.read("time_namespace", p.time_namespace);
  o.read("host_root", p.host_root);
  o.read("launcher", p.launcher);
  o.read("run_key", p.run_key);
  o.read("job", p.job);
  o.read("step", p.step);
  o.read("job_user", p.job_user);
  o.read("container", p.container);
  o.read("cgroup", p.cgroup);
  o.read("world_size", p.world_size);
  return p;
}

Json rank_to_json(const RankEnd& r) {
  return {{"rank", r.rank >= 0 ? Json(r.rank) : Json(nullptr)},
          {"pid", r.pid},
          {"node", r.node},
          {"exit_code", part_integer(r.exit_code)},
          {"signal", part_integer(r.signal)},
          {"begin_ns", part_time(r.begin)},
          {"end_ns", part_time(r.end)}};
}

RankEnd read_rank(JsonObject& o) {
  RankEnd r;
  o.read("rank", r.rank);
  o.read("pid", r.pid);
  o.read("node", r.node);
  o.read("exit_code", r.exit_code);
  o.read("signal", r.signal);
  o.read("begin_ns", r.begin);
  o.read("end_ns", r.end);
  return r;
}

Json clock_to_json(const ClockLink& link) {
  Json offsets = Json::array();
  for (const ClockOffset& o : link.offsets)
    offsets.push_back({{"at_ns", to_ns(o.at)}, {"offset_ns", o.offset.count()}, {"error_ns", o.error.count()}});
  const char* word = nullptr;
  for (const auto& [method, name] : kMethods)
    if (method == link.method) word = name;
  return {{"reference", link.reference}, {"method", word}, {"offsets", std::move(offsets)}};
}

ClockLink read_clock(JsonObject& o) {
  ClockLink link;
  std::string word;
  o.read("reference", link.reference);
  o.read("method", word);
  bool known = false;
  for (const auto& [method, name] : kMethods)
    if (word == name) {
      link.method = method;
      known = true;
    }
  if (!known) o.complain("method", "\"same\", \"exchange\" or \"wall\"");
  o.read_objects("offsets", [&](JsonObject& entry) {
    std::optional<MonoTime> at;
    std::optional<Nanos> offset, error;
    entry.read("at_ns", at);
    entry.read("offset_ns", offset);
    entry.read("error_ns", error);
    if (at && offset && error) link.offsets.push_back({*at, *offset, *error});
  });
  return link;
}

}  // namespace

void add_part_keys(Json& json, const Manifest& m) {
  if (m.parts)
    json["parts"] = {{"run_key", m.parts->run_key},
                     {"launcher", m.parts->launcher},
                     {"nodes", part_integer(m.parts->nodes)},
                     {"ranks", part_integer(m.parts->ranks)},
                     {"clock_reference", m.parts->clock_reference}};
  if (m.place) json["place"] = place_to_json(*m.place);
  if (!m.ranks.empty()) {
    Json ranks = Json::array();
    for (const RankEnd& rank : m.ranks) ranks.push_back(rank_to_json(rank));
    json["ranks"] = std::move(ranks);
  }
  if (m.clock) json["clock"] = clock_to_json(*m.clock);
}

void read_part_keys(JsonObject& object, Manifest& m) {
  object.read_object("parts", [&](JsonObject& o) {
    Parts parts;
    o.read("run_key", parts.run_key);
    o.read("launcher", parts.launcher);
    o.read("nodes", parts.nodes);
    o.read("ranks", parts.ranks);
    o.read("clock_reference", parts.clock_reference);
    m.parts = std::move(parts);
  });
  object.read_object("place", [&](JsonObject& o) { m.place = read_place(o); });
  object.read_objects("ranks", [&](JsonObject& o) { m.ranks.push_back(read_rank(o)); });
  object.read_object("clock", [&](JsonObject& o) { m.clock = read_clock(o); });
}

}  // namespace ergometer
