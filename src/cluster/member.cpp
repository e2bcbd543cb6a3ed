#include "cluster/member.hpp"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_object.hpp"
#include "cluster/launch.hpp"

namespace ergometer {
namespace {

constexpr const char* kMemberSchema = "ergometer.member/1";

template <class T>
void put(nlohmann::json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

void put(nlohmann::json& json, const char* key, const std::optional<MonoTime>& value) {
  if (value) json[key] = to_ns(*value);
}

}  // namespace

Member this_member(std::optional<int> rank, std::string node, const Environment& environment) {
  Member member;
  member.rank = rank;
  member.pid = ::getpid();
  std::error_code ec;
  member.pid_namespace = std::filesystem::read_symlink("/proc/self/ns/pid", ec).string();
  member.node = std::move(node);
  member.devices = device_variables(environment);
  return member;
}

std::string member_to_json(const Member& member) {
  nlohmann::json json{{"schema", kMemberSchema},
                      {"pid", member.pid},
                      {"pid_namespace", member.pid_namespace},
                      {"node", member.node},
                      {"devices", member.devices}};
  put(json, "rank", member.rank);
  put(json, "begin_ns", member.begin);
  put(json, "end_ns", member.end);
  put(json, "exit_code", member.exit_code);
  put(json, "signal", member.signal);
  put(json, "cpu_s", member.cpu_s);
  // A host name or variable may hold any byte.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Member> member_from_json(std::string_view text, const std::string& source) {
  Member member;
  auto read = read_json(text, source, kMemberSchema, [&](JsonObject& o) {
    o.read("rank", member.rank);
    o.read("pid", member.pid);
    o.read("pid_namespace", member.pid_namespace);
    o.read("node", member.node);
    o.read("devices", member.devices);
    o.read("begin_ns", member.begin);
    o.read("end_ns", member.end);
    o.read("exit_code", member.exit_code);
    o.read("signal", member.signal);
    o.read("cpu_s", member.cpu_s);
  });
  if (!read) return tl::unexpected(read.error());
  return member;
}

}  // namespace ergometer
