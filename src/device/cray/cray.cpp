#include "device/cray/cray.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/cpu_topology.hpp"
#include "device/kernel_file.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

constexpr const char* kFolder = "/sys/cray/pm_counters";
constexpr int kTries = 3;  // a scan comes ten times a second and takes much less than that

// "1234 W", or on EX systems "1234 W 1700000000123456 us": the wall time of the sensor.
struct FileReading {
  double value = 0;
  std::optional<WallTime> time;
};

std::optional<FileReading> parse_reading(std::string_view text, std::string_view unit) {
  std::vector<std::string_view> parts;
  for (const auto part : split(trim(text), ' '))
    if (!part.empty()) parts.push_back(part);
  if (parts.size() != 2 && parts.size() != 4) return std::nullopt;
  const auto value = parse_uint(parts[0]);
  if (!value || parts[1] != unit) return std::nullopt;
  FileReading out{static_cast<double>(*value), std::nullopt};
  if (parts.size() == 4) {
    const auto us = parse_int(parts[2]);
    if (!us || *us <= 0 || *us > 9'000'000'000'000'000 || parts[3] != "us") return std::nullopt;
    out.time = wall_ns(*us * 1000);
  }
  return out;
}

// A counter file of the set: number, name of the file, unit.
class PmFile {
 public:
  PmFile(fs::path path, std::string unit) : file_(path), state_(path.filename().string()), unit_(std::move(unit)) {}
  Result<FileReading> probe() {
    const auto text = file_.read();
    if (!text) return tl::unexpected(text.error());
    if (const auto reading = parse_reading(*text, unit_)) return *reading;
    return fail(ErrorCode::corrupt, fmt::format("{} holds \"{}\", not a number of {}", file_.path().string(),
                                                trim(*text).substr(0, 40), unit_));
  }
  std::optional<FileReading> read(Readings& out) {
    auto reading = probe();
    if (!reading) {
      state_.bad(out, reading.error());
      return std::nullopt;
    }
    state_.good(out);
    return *reading;
  }
  const Error* error() const { return state_.error(); }

 private:
  KernelFile file_;
  ReadState state_;
  std::string unit_;
};

// One of the counters that say something about the set; nothing where the system has no such file.
class Marker {
 public:
  explicit Marker(fs::path path) : file_(std::move(path), "") {}
  std::optional<std::int64_t> value() {
    const auto v = file_.probe();
    return v ? std::optional(*v) : std::nullopt;
  }
  // True if it can be read and differs from the last time that it could.
  bool changed() {
    const auto now = value();
    if (!now) return false;
    const bool out = last_ && *last_ != *now;
    last_ = now;
    return out;
  }

 private:
  NumberFile file_;
  std::optional<std::int64_t> last_;
};

class CraySensor final : public Sensor {
 public:
  CraySensor(SensorInfo info, std::shared_ptr<Clock> clock, const fs::path& folder, std::vector<PmFile> files)
      : Sensor(std::move(info)),
        clock_(std::move(clock)),
        files_(std::move(files)),
        freshness_(folder / "freshness"),
        startup_(folder / "startup"),
        generation_(folder / "generation") {}

  Result<void> read(Readings& out) override {
    for (int i = 0; i < kTries; ++i) {
      const auto before = freshness_.value();
      if (before && before == last_freshness_) return {};  // no new scan
      std::vector<std::optional<FileReading>> readings;
      for (auto& file : files_) readings.push_back(file.read(out));
      if (freshness_.value() != before) continue;  // a scan came in between: not one moment
      last_freshness_ = before;
      return deliver(readings, out);
    }
    return {};
  }

 private:
  Result<void> deliver(const std::vector<std::optional<FileReading>>& readings, Readings& out) {
    if (startup_.changed()) out.event("reset", "the node controller started again: counters begin anew");
    if (generation_.changed()) out.event("control", "the power cap was changed");
    std::vector<std::optional<double>> values;
    std::optional<WallTime> time;
    for (const auto& reading : readings) {
      values.push_back(reading ? std::optional(reading->value) : std::nullopt);
      if (reading && reading->time) time = std::max(time, reading->time);
    }
    if (std::ranges::none_of(values, [](const auto& v) { return v.has_value(); }))
      return tl::unexpected(*files_.front().error());
    if (!info_.own_time)
      out.add(std::move(values));
    else if (time)
      out.add_at(clock_->to_mono(*time), std::move(values));
    return {};
  }

  std::shared_ptr<Clock> clock_;
  std::vector<PmFile> files_;
  Marker freshness_, startup_, generation_;
  std::optional<std::int64_t> last_freshness_;
};

// A part of the node with a power and an energy file.
struct Part {
  std::string prefix;  // of the file names: "", "cpu_", "accel0_"
  std::string word;    // of the columns: "node", "cpu"
  std::string domain;
  Scope scope;
  bool in_total;
  std::string note;
};

// cpu and memory stand for all sockets together. On one socket that is the domain which RAPL measures too, and a domain
// is counted once; on several it has no counterpart and must not be added to the sockets.
std::vector<Part> parts_of(int sockets) {
  const bool one = sockets == 1;
  const char* note = one ? "" : "all sockets together: shown apart, never added to single sockets";
  std::vector<Part> out{
      {"", "node", "node", Scope::node, true, "whole node: contains all other parts, so it is never added to them"},
      {"cpu_", "cpu", one ? "package/0" : "package/all", Scope::package, one, note},
      {"memory_", "memory", one ? "dram/0" : "dram/all", Scope::dram, one, note},
  };
  for (int i = 0; i < 8; ++i)
    out.push_back({fmt::format("accel{}_", i), fmt::format("accel{}", i), fmt::format("accel/{}", i), Scope::gpu, false,
                   "accelerator in the order of the board, which need not be the driver's; not added"});
  return out;
}

Channel pm_channel(const Part& part, bool power, std::optional<Nanos> period) {
  Channel c;
  c.column = part.word + (power ? "_power_w" : "_energy_j");
  c.quantity = power ? Quantity::power : Quantity::energy;
  c.unit = power ? "W" : "J";
  c.behaviour = power ? Behaviour::gauge : Behaviour::counter;
  c.method = power ? Method::integral : Method::counter;
  c.domain = part.domain;
  c.device = "pm_counters/" + part.prefix + (power ? "power" : "energy");
  c.scope = part.scope;
  c.in_total = part.in_total;
  c.period = period;
  c.resolution = 1;
  c.note = part.note;
  return c;
}

}  // namespace

void discover_cray(const Host& host, const DiscoverOptions& options, Discovery& out) {
  const auto folder = host.root.path(kFolder);
  if (list_dir(folder).empty()) {
    out.node.absences.push_back({"cray", "pm_counters", folder.string() + " is not there", "only on HPE Cray nodes"});
    return;
  }
  std::optional<Nanos> period;
  if (const auto hz = NumberFile(folder / "raw_scan_hz", "").probe(); hz && *hz > 0 && *hz <= 1'000'000)
    period = from_seconds(1.0 / static_cast<double>(*hz));

  SensorInfo info;
  info.name = "cray";
  info.interface = "cray";
  info.interval = options.interval.value_or(std::chrono::milliseconds(100));
  info.own_time = true;
  info.note = folder.string();
  std::vector<PmFile> files;
  for (const auto& part : parts_of(count_packages(host.root))) {
    for (const bool power : {true, false}) {
      PmFile file(folder / (part.prefix + (power ? "power" : "energy")), power ? "W" : "J");
      const auto reading = file.probe();
      if (!reading && reading.error().code == ErrorCode::not_found) continue;
      auto channel = pm_channel(part, power, period);
      if (!reading) {
        out.node.absences.push_back({"cray", channel.device, reading.error().message, ""});
        continue;
      }
      info.own_time = info.own_time && reading->time;
      info.channels.push_back(std::move(channel));
      files.push_back(std::move(file));
    }
  }
  if (files.empty()) {
    out.node.absences.push_back({"cray", "pm_counters", folder.string() + " has no readable counter", ""});
    return;
  }
  out.sensors.push_back(std::make_shared<CraySensor>(std::move(info), host.clock, folder, std::move(files)));
}

}  // namespace ergometer
