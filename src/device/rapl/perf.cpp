#include "device/rapl/perf.hpp"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <thread>
#include <utility>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/cpu_topology.hpp"
#include "device/kernel_file.hpp"

namespace ergometer::rapl {
namespace {

constexpr std::string_view kPmu = "/sys/bus/event_source/devices/power/";
constexpr int kStillReads = 20;  // equal readings after which a counter is compared with its zone
constexpr std::array<std::pair<std::string_view, Kind>, 5> kEvents{{{"energy-pkg", Kind::package},
                                                                    {"energy-cores", Kind::core},
                                                                    {"energy-gpu", Kind::uncore},
                                                                    {"energy-ram", Kind::dram},
                                                                    {"energy-psys", Kind::psys}}};

// "event=0x02": the form that this PMU uses; anything else is not understood.
std::optional<std::uint64_t> event_config(std::string_view text) {
  text = trim(text);
  if (!text.starts_with("event=0x")) return std::nullopt;
  text.remove_prefix(8);
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<PerfEvent> read_event(const HostRoot& root, std::string_view name, Kind kind) {
  const auto file = std::string(kPmu) + "events/" + std::string(name);
  const auto config_text = read_file(root.path(file), 4096);
  if (!config_text) return tl::unexpected(config_text.error());
  const auto config = event_config(*config_text);
  const auto scale_text = read_file(root.path(file + ".scale"), 4096);
  const double scale = scale_text ? parse_double(*scale_text).value_or(0) : 0;
  const auto unit = read_file(root.path(file + ".unit"), 4096);
  if (!config || scale <= 0 || !unit || trim(*unit) != "Joules")
    return fail(ErrorCode::corrupt, root.path(file).string() + " is not described as an event in Joules");
  return PerfEvent{std::string(name), kind, *config, scale};
}

struct Descriptor {
  int fd = -1;
  explicit Descriptor(int f) : fd(f) {}
  Descriptor(Descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// One event of one CPU, and whether its counter can be believed.
struct Counter {
  double joules = 0;
  std::string column;
  std::optional<KernelFile> zone;          // the same counter through powercap
  std::optional<std::int64_t> zone_value;  // at the first of the equal readings
  bool package = false;
  std::uint64_t last = 0;
  bool seen = false, believed = false, stuck = false;
  int still = 0;
};

struct Group {
  int cpu = 0;
  std::vector<Descriptor> descriptors;  // the first leads
  std::vector<Counter> counters;
  bool lost = false;
};

std::optional<std::int64_t> zone_value(Counter& counter) {
  if (!counter.zone) return std::nullopt;
  const auto text = counter.zone->read();
  return text ? parse_int(*text) : std::nullopt;
}

// After kStillReads equal readings: stuck if the zone went on, or if there is no zone and it is a package, which never
// rests; believed if the zone rested as well.
void judge_still(Counter& counter, Readings& out) {
  const auto now = zone_value(counter);
  const bool moves = counter.zone_value && now ? *now != *counter.zone_value : counter.package;
  if (moves) {
    counter.stuck = true;
    counter.believed = false;
    out.event("stuck", fmt::format("{}: the perf counter did not move in {} readings{}", counter.column, kStillReads,
                                   counter.zone ? " while powercap did" : ""));
  } else {
    counter.believed = true;
  }
}

// The reading in joules, or missing while it is not known whether the counter lives: a driver that refuses the read
// answers with a constant, which must not pass for 0 J.
std::optional<double> take(Counter& counter, std::uint64_t raw, Readings& out) {
  const bool moved = counter.seen && raw != counter.last;
  if (moved) {
    if (counter.stuck) out.event("back", counter.column);
    counter.believed = true;
    counter.stuck = false;
    counter.still = 0;
  } else if (counter.seen && counter.still < kStillReads) {
    if (++counter.still == 1) counter.zone_value = zone_value(counter);
    if (counter.still == kStillReads) judge_still(counter, out);
  }
  counter.seen = true;
  counter.last = raw;
  if (!counter.believed) return std::nullopt;
  return static_cast<double>(raw) * counter.joules;
}

class PerfSensor final : public Sensor {
 public:
  PerfSensor(SensorInfo info, PerfCalls calls, std::vector<Group> groups)
      : Sensor(std::move(info)), calls_(std::move(calls)), groups_(std::move(groups)) {}

  Result<void> read(Readings& out) override {
    std::vector<std::optional<double>> values;
    values.reserve(info_.channels.size());
    bool any = false;
    for (auto& group : groups_) {
      const bool good = read_group(group);
      if (good == group.lost) out.event(good ? "back" : "lost", fmt::format("perf energy events of CPU {}", group.cpu));
      group.lost = !good;
      any = any || good;
      for (std::size_t i = 0; i < group.counters.size(); ++i)
        values.push_back(good ? take(group.counters[i], buffer_[i + 1], out) : std::nullopt);
    }
    if (!any) return fail(ErrorCode::lost, "no perf energy event can be read");
    out.add(std::move(values));
    return {};
  }

  // Reads until every counter has moved, which takes about 1 ms on a live machine; 5 ms at most.
  void wait_for_movement() {
    Readings ignored;
    for (int i = 0; i < 6; ++i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (!read(ignored)) break;
      const bool alive = std::ranges::all_of(groups_, [](const Group& g) {
        return std::ranges::all_of(g.counters, [](const Counter& c) { return c.believed; });
      });
      if (alive) break;
    }
    // These readings are too close together to count against a counter, and what they met is not yet told.
    for (auto& group : groups_) {
      group.lost = false;
      for (auto& counter : group.counters) counter.still = 0;
    }
  }

 private:
  // Fills buffer_ with the number of events and their counts, of one moment.
  bool read_group(const Group& group) {
    const std::size_t wanted = (group.counters.size() + 1) * sizeof(std::uint64_t);
    ssize_t n = 0;
    do n = calls_.read(group.descriptors.front().fd, buffer_.data(), wanted);
    while (n < 0 && errno == EINTR);
    return n == static_cast<ssize_t>(wanted) && buffer_[0] == group.counters.size();
  }

  PerfCalls calls_;
  std::vector<Group> groups_;
  std::array<std::uint64_t, kEvents.size() + 1> buffer_{};
};

const Zone* zone_of(const Domain& domain, const std::vector<Zone>& zones) {
  for (const auto& zone : zones)
    if (zone.domain == domain && !zone.id.starts_with("intel-rapl-mmio:")) return &zone;
  return nullptr;
}

Channel perf_channel(const PerfEvent& event, const Domain& domain, int cpu, const Zone* zone) {
  Channel c = energy_channel(domain);
  c.device = fmt::format("{} of CPU {}", event.name, cpu);
  if (zone) {
    c.domain = zone->channel.domain;
    c.in_total = zone->channel.in_total;
    c.resolution = zone->channel.resolution;
    c.max_power_w = zone->channel.max_power_w;
    if (!c.in_total) c.note = zone->channel.note;
  }
  return c;
}

// Where the counters of the mask's CPUs belong; the die only where a package has several CPUs in the mask.
std::vector<Domain> places_of(const HostRoot& root, const std::vector<int>& cpus) {
  std::vector<Domain> out;
  std::vector<CpuPlace> places;
  for (std::size_t i = 0; i < cpus.size(); ++i)
    places.push_back(cpu_place(root, cpus[i]).value_or(CpuPlace{static_cast<int>(i), 0, 0}));
  for (const auto& place : places) {
    const bool several =
        std::ranges::count_if(places, [&](const CpuPlace& p) { return p.package == place.package; }) > 1;
    out.push_back({Kind::package, place.package, several ? std::optional(place.die) : std::nullopt, {}});
  }
  return out;
}

}  // namespace

PerfCalls system_perf_calls() {
  return {[](std::uint32_t type, std::uint64_t config, int cpu, int group_fd) {
            perf_event_attr attr{};
            attr.size = sizeof attr;
            attr.type = type;
            attr.config = config;
            attr.read_format = PERF_FORMAT_GROUP;
            const long fd = ::syscall(SYS_perf_event_open, &attr, -1, cpu, group_fd, PERF_FLAG_FD_CLOEXEC);
            return fd < 0 ? -errno : static_cast<int>(fd);
          },
          [](int fd, void* buffer, std::size_t size) { return ::read(fd, buffer, size); }};
}

Result<PerfPmu> read_power_pmu(const HostRoot& root) {
  const auto type_file = root.path(std::string(kPmu) + "type");
  const auto type_text = read_file(type_file, 4096);
  if (!type_text) return tl::unexpected(type_text.error());
  const auto mask_text = read_file(root.path(std::string(kPmu) + "cpumask"), 1 << 16);
  if (!mask_text) return tl::unexpected(mask_text.error());
  const auto type = parse_uint(*type_text);
  const auto cpus = parse_cpu_list(*mask_text);
  if (!type || *type > UINT32_MAX || !cpus || cpus->empty())
    return fail(ErrorCode::corrupt, type_file.parent_path().string() + ": type or cpumask make no sense");
  PerfPmu pmu{static_cast<std::uint32_t>(*type), *cpus, {}};
  std::optional<Error> damaged;
  for (const auto& [name, kind] : kEvents) {
    auto event = read_event(root, name, kind);
    if (event)
      pmu.events.push_back(std::move(*event));
    else if (event.error().code != ErrorCode::not_found)
      damaged = event.error();
  }
  if (!pmu.events.empty()) return pmu;
  if (damaged) return tl::unexpected(*damaged);
  return fail(ErrorCode::not_found, type_file.parent_path().string() + " has no energy events");
}

Result<std::shared_ptr<Sensor>> open_perf_sensor(const HostRoot& root, const PerfPmu& pmu, const PerfCalls& calls,
                                                 const std::vector<Zone>& zones, Nanos interval,
                                                 std::vector<Absence>& absences) {
  SensorInfo info;
  info.name = "rapl";
  info.interface = "rapl-perf";
  info.interval = interval;
  info.note = "perf power PMU; counts from the start of the measurement, wraps are folded by the kernel";
  std::vector<Group> groups;
  std::optional<Error> first_error;
  const auto places = places_of(root, pmu.cpus);
  for (std::size_t i = 0; i < pmu.cpus.size(); ++i) {
    Group group;
    group.cpu = pmu.cpus[i];
    for (const auto& event : pmu.events) {
      // The platform counter is one for the machine and can be read on the first package only.
      if (event.kind == Kind::psys && i > 0) continue;
      const int fd =
          calls.open(pmu.type, event.config, group.cpu, group.descriptors.empty() ? -1 : group.descriptors.front().fd);
      Domain domain = places[i];
      domain.kind = event.kind;
      if (event.kind == Kind::psys) domain = {Kind::psys, 0, std::nullopt, {}};
      if (fd < 0) {
        auto error = errno_error("open", fmt::format("perf event power/{}/ on CPU {}", event.name, group.cpu), -fd);
        absences.push_back({"rapl-perf", domain_name(domain), error.message, ""});
        if (!first_error) first_error = std::move(error);
        continue;
      }
      const Zone* zone = zone_of(domain, zones);
      group.descriptors.emplace_back(fd);
      info.channels.push_back(perf_channel(event, domain, group.cpu, zone));
      Counter counter;
      counter.joules = event.joules;
      counter.column = info.channels.back().column;
      counter.package = event.kind == Kind::package;
      if (zone) counter.zone.emplace(zone->energy_file);
      counter.believed = !counter.package && !zone;
      group.counters.push_back(std::move(counter));
    }
    if (!group.counters.empty()) groups.push_back(std::move(group));
  }
  if (groups.empty()) {
    absences.clear();
    return tl::unexpected(first_error.value_or(Error{ErrorCode::not_found, "the power PMU has no events", {}}));
  }
  auto sensor = std::make_shared<PerfSensor>(std::move(info), calls, std::move(groups));
  sensor->wait_for_movement();
  return sensor;
}

}  // namespace ergometer::rapl
