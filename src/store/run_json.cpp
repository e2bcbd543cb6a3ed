#include "store/run_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_object.hpp"
#include "model/sensor_json.hpp"
#include "store/part_json.hpp"

namespace ergometer {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRunSchema = "ergometer.run/1";
constexpr const char* kPartSchema = "ergometer.part/1";
constexpr const char* kNodeSchema = "ergometer.node/1";

Json number(std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value) : Json(nullptr); }

template <class T>
Json integer(std::optional<T> value) {
  return value ? Json(*value) : Json(nullptr);
}

Json time(std::optional<MonoTime> t) { return t ? Json(to_ns(*t)) : Json(nullptr); }

Json interval(const std::optional<Interval>& value) {
  return value ? Json{{"begin_ns", to_ns(value->begin)}, {"end_ns", to_ns(value->end)}} : Json(nullptr);
}

template <class List, class Function>
Json array(const List& list, Function to_json) {
  Json out = Json::array();
  for (const auto& entry : list) out.push_back(to_json(entry));
  return out;
}

Json texts(const std::map<std::string, std::string>& values) {
  Json out = Json::object();
  for (const auto& [key, value] : values) out[key] = value;
  return out;
}

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json to_json(const MigSlice& s) {
  return {{"uuid", s.uuid},
          {"gpu_instance", s.gpu_instance},
          {"compute_instance", s.compute_instance},
          {"multiprocessors", number(s.multiprocessors)},
          {"memory_bytes", number(s.memory_bytes)},
          {"visible", s.visible}};
}

Json to_json(const GpuInfo& g) {
  return {{"index", g.index},
          {"uuid", g.uuid},
          {"name", g.name},
          {"pci_bus_id", g.pci_bus_id},
          {"memory_bytes", number(g.memory_bytes)},
          {"power_limit_w", number(g.power_limit_w)},
          {"default_power_limit_w", number(g.default_power_limit_w)},
          {"min_power_limit_w", number(g.min_power_limit_w)},
          {"max_power_limit_w", number(g.max_power_limit_w)},
          {"visible", g.visible},
          {"ordinal", integer(g.ordinal)},
          {"mig", g.mig},
          {"slices", array(g.slices, [](const MigSlice& s) { return to_json(s); })},
          {"state", g.state},
          {"note", g.note}};
}

void read_interval(JsonObject& object, const char* key, std::optional<Interval>& out) {
  object.read_object(key, [&](JsonObject& o) {
    std::optional<MonoTime> begin, end;
    o.read("begin_ns", begin);
    o.read("end_ns", end);
    if (begin && end) out = Interval{*begin, *end};
  });
}

GpuInfo read_gpu(JsonObject& o) {
  GpuInfo g;
  o.read("index", g.index);
  o.read("uuid", g.uuid);
  o.read("name", g.name);
  o.read("pci_bus_id", g.pci_bus_id);
  o.read("memory_bytes", g.memory_bytes);
  o.read("power_limit_w", g.power_limit_w);
  o.read("default_power_limit_w", g.default_power_limit_w);
  o.read("min_power_limit_w", g.min_power_limit_w);
  o.read("max_power_limit_w", g.max_power_limit_w);
  o.read("visible", g.visible);
  o.read("ordinal", g.ordinal);
  o.read("mig", g.mig);
  o.read_objects("slices", [&](JsonObject& s) {
    MigSlice slice;
    s.read("uuid", slice.uuid);
    s.read("gpu_instance", slice.gpu_instance);
    s.read("compute_instance", slice.compute_instance);
    s.read("multiprocessors", slice.multiprocessors);
    s.read("memory_bytes", slice.memory_bytes);
    s.read("visible", slice.visible);
    g.slices.push_back(std::move(slice));
  });
  o.read("state", g.state);
  o.read("note", g.note);
  return g;
}

Warning read_warning(JsonObject& o) {
  Warning w;
  o.read("code", w.code);
  o.read("message", w.message);
  o.read("remedy", w.remedy);
  return w;
}

std::string write_manifest(const Manifest& m, const char* schema) {
  const auto clock = [](const ClockPair& c) {
    Json pair{{"mono_ns", to_ns(c.mono)}, {"wall_ns", to_ns(c.wall)}};
    if (c.error) pair["error_ns"] = c.error->count();
    return pair;
  };
  const auto warning = [](const Warning& w) {
    return Json{{"code", w.code}, {"message", w.message}, {"remedy", w.remedy}};
  };
  const auto overhead = [](const Overhead& o) {
    return Json{{"cpu_s", number(o.cpu_s)}, {"max_rss_bytes", number(o.max_rss_bytes)}};
  };
  Json json{{"schema", schema},
            {"name", m.name},
            {"state", m.state},
            {"tool_version", m.tool_version},
            {"command", m.command},
            {"directory", m.directory},
            {"environment", texts(m.environment)},
            {"begin_ns", time(m.begin)},
            {"end_ns", time(m.end)},
            {"exit_code", integer(m.exit_code)},
            {"signal", integer(m.signal)},
            {"idle_before", interval(m.idle_before)},
            {"idle_after", interval(m.idle_after)},
            {"clocks", array(m.clocks, clock)},
            {"nodes", m.nodes},
            {"overhead", m.overhead ? overhead(*m.overhead) : Json(nullptr)},
            {"warnings", array(m.warnings, warning)}};
  add_part_keys(json, m);
  return dump(json);
}

Result<Manifest> read_manifest(std::string_view text, const std::string& source, const char* schema) {
  Manifest m;
  const auto read = read_json(text, source, schema, [&](JsonObject& o) {
    m.state.clear();
    o.read("name", m.name);
    o.read("state", m.state);
    o.read("tool_version", m.tool_version);
    o.read("command", m.command);
    o.read("directory", m.directory);
    o.read("environment", m.environment);
    o.read("begin_ns", m.begin);
    o.read("end_ns", m.end);
    o.read("exit_code", m.exit_code);
    o.read("signal", m.signal);
    read_interval(o, "idle_before", m.idle_before);
    read_interval(o, "idle_after", m.idle_after);
    o.read_objects("clocks", [&](JsonObject& c) {
      std::optional<MonoTime> mono;
      std::optional<std::int64_t> wall;
      c.read("mono_ns", mono);
      c.read("wall_ns", wall);
      std::optional<Nanos> error;
      c.read("error_ns", error);
      if (mono && wall) m.clocks.push_back({*mono, wall_ns(*wall), error});
    });
    o.read("nodes", m.nodes);
    o.read_object("overhead", [&](JsonObject& c) {
      std::optional<double> cpu;
      Overhead overhead;
      c.read("cpu_s", cpu);
      c.read("max_rss_bytes", overhead.max_rss_bytes);
      if (!cpu) return;
      overhead.cpu_s = *cpu;
      m.overhead = overhead;
    });
    o.read_objects("warnings", [&](JsonObject& w) { m.warnings.push_back(read_warning(w)); });
    read_part_keys(o, m);
  });
  if (!read) return tl::unexpected(read.error());
  // Written by hand, a run is taken as ended.
  if (m.state.empty()) m.state = "complete";
  return m;
}

}  // namespace

std::string manifest_to_json(const Manifest& m) { return write_manifest(m, kRunSchema); }
std::string part_to_json(const Manifest& m) { return write_manifest(m, kPartSchema); }

std::string node_to_json(const Node& n) {
  const auto absence = [](const Absence& a) {
    return Json{{"interface", a.interface}, {"what", a.what}, {"reason", a.reason}, {"remedy", a.remedy}};
  };
  const auto component = [](const Component& c) {
    return Json{{"kind", c.kind}, {"name", c.name}, {"model", c.model}};
  };
  return dump({{"schema", kNodeSchema},
               {"name", n.name},
               {"hostname", n.hostname},
               {"boot_id", n.boot_id},
               {"kernel", n.kernel},
               {"cpu",
                {{"model", n.cpu.model},
                 {"sockets", integer(n.cpu.sockets)},
                 {"cores", integer(n.cpu.cores)},
                 {"threads", integer(n.cpu.threads)},
                 {"online", n.cpu.online},
                 {"quota_cpus", number(n.cpu.quota_cpus)}}},
               {"memory_bytes", number(n.memory_bytes)},
               {"memory_limit_bytes", number(n.memory_limit_bytes)},
               {"gpus", array(n.gpus, [](const GpuInfo& g) { return to_json(g); })},
               {"components", array(n.components, component)},
               {"versions", texts(n.versions)},
               {"sensors", array(n.sensors, [](const SensorInfo& s) { return sensor_to_json(s); })},
               {"absences", array(n.absences, absence)}});
}

Result<Manifest> manifest_from_json(std::string_view text, const std::string& source) {
  return read_manifest(text, source, kRunSchema);
}
Result<Manifest> part_from_json(std::string_view text, const std::string& source) {
  return read_manifest(text, source, kPartSchema);
}

Result<Node> node_from_json(std::string_view text, const std::string& source) {
  Node n;
  const auto read = read_json(text, source, kNodeSchema, [&](JsonObject& o) {
    o.read("name", n.name);
    o.read("hostname", n.hostname);
    o.read("boot_id", n.boot_id);
    o.read("kernel", n.kernel);
    o.read_object("cpu", [&](JsonObject& c) {
      c.read("model", n.cpu.model);
      c.read("sockets", n.cpu.sockets);
      c.read("cores", n.cpu.cores);
      c.read("threads", n.cpu.threads);
      c.read("online", n.cpu.online);
      c.read("quota_cpus", n.cpu.quota_cpus);
    });
    o.read("memory_bytes", n.memory_bytes);
    o.read("memory_limit_bytes", n.memory_limit_bytes);
    o.read_objects("gpus", [&](JsonObject& g) { n.gpus.push_back(read_gpu(g)); });
    o.read_objects("components", [&](JsonObject& c) {
      Component component;
      c.read("kind", component.kind);
      c.read("name", component.name);
      c.read("model", component.model);
      n.components.push_back(std::move(component));
    });
    o.read("versions", n.versions);
    o.read_objects("sensors", [&](JsonObject& s) { n.sensors.push_back(sensor_from_json(s)); });
    o.read_objects("absences", [&](JsonObject& a) {
      Absence absence;
      a.read("interface", absence.interface);
      a.read("what", absence.what);
      a.read("reason", absence.reason);
      a.read("remedy", absence.remedy);
      n.absences.push_back(std::move(absence));
    });
  });
  if (!read) return tl::unexpected(read.error());
  return n;
}

}  // namespace ergometer
