#include "device/procfs/system.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <vector>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/cgroup.hpp"
#include "device/cpu_topology.hpp"
#include "device/kernel_file.hpp"
#include "device/proc_stat.hpp"
#include "device/procfs/resource.hpp"

namespace ergometer::procfs {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kMaxBytes = 4 << 20;  // /proc/stat of a machine with thousands of CPUs and interrupts
constexpr double kSectorBytes = 512;        // the unit of /proc/diskstats, whatever the disk's own sector

double ticks_per_s() {
  static const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ticks;
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  for (const auto word : split(trim(line), ' '))
    if (!word.empty()) out.push_back(word);
  return out;
}

// A sum of counters whose members come and go: what each one gained since it was first seen. Never falls.
class GainSum {
 public:
  void add(const std::string& member, double value) {
    const auto [it, is_new] = last_.try_emplace(member, value);
    if (!is_new && value > it->second) total_ += value - it->second;
    it->second = value;
  }
  double total() const { return total_; }

 private:
  std::map<std::string, double> last_;
  double total_ = 0;
};

// A pair of byte counters over all devices of a kind, e.g. read and written.
struct Traffic {
  GainSum in, out;
};

// Partitions lie on whole disks, and so do the devices that only map onto others.
bool is_whole_disk(const HostRoot& root, std::string_view name) {
  for (const char* virtual_kind : {"loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd"})
    if (name.starts_with(virtual_kind)) return false;
  std::error_code ec;
  return fs::exists(root.path(fmt::format("/sys/block/{}", name)), ec);
}

class Disks {
 public:
  explicit Disks(const HostRoot& root) : root_(root), file_(root.path("/proc/diskstats"), kMaxBytes) {}
  // False if there is no list.
  bool update() {
    const auto text = file_.read();
    if (!text) return false;
    for (const auto line : split(*text, '\n')) {
      const auto fields = words(line);
      if (fields.size() < 10) continue;
      const std::string name(fields[2]);
      auto whole = whole_.find(name);
      if (whole == whole_.end()) whole = whole_.emplace(name, is_whole_disk(root_, name)).first;
      const auto read = parse_uint(fields[5]), written = parse_uint(fields[9]);
      if (!whole->second || !read || !written) continue;
      traffic.in.add(name, static_cast<double>(*read) * kSectorBytes);
      traffic.out.add(name, static_cast<double>(*written) * kSectorBytes);
    }
    return true;
  }
  Traffic traffic;

 private:
  HostRoot root_;
  KernelFile file_;
  std::map<std::string, bool> whole_;
};

class Network {
 public:
  explicit Network(const HostRoot& root) : root_(root), file_(root.path("/proc/net/dev"), kMaxBytes) {}
  bool update() {
    const auto text = file_.read();
    if (!text) return false;
    struct Line {
      std::string name;
      double received, sent;
      bool physical;
    };
    std::vector<Line> lines;
    for (const auto line : split(*text, '\n')) {
      const auto colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      const std::string name(trim(line.substr(0, colon)));
      const auto fields = words(line.substr(colon + 1));
      const auto received = fields.size() > 8 ? parse_uint(fields[0]) : std::nullopt;
      const auto sent = fields.size() > 8 ? parse_uint(fields[8]) : std::nullopt;
      if (name == "lo" || !received || !sent) continue;
      lines.push_back({name, static_cast<double>(*received), static_cast<double>(*sent), is_physical(name)});
    }
    // Bridges, bonds and tunnels repeat what crosses a physical interface; a container may have no physical one.
    const bool any_physical = std::ranges::any_of(lines, &Line::physical);
    for (const auto& line : lines) {
      if (line.physical != any_physical) continue;
      traffic.in.add(line.name, line.received);
      traffic.out.add(line.name, line.sent);
    }
    return true;
  }
  Traffic traffic;

 private:
  bool is_physical(const std::string& name) {
    const auto known = physical_.find(name);
    if (known != physical_.end()) return known->second;
    std::error_code ec;
    return physical_[name] = fs::exists(root_.path(fmt::format("/sys/class/net/{}/device", name)), ec);
  }
  HostRoot root_;
  KernelFile file_;
  std::map<std::string, bool> physical_;
};

std::optional<double> meminfo_bytes(std::string_view text, std::string_view key) {
  for (const auto line : split(text, '\n'))
    if (line.starts_with(key) && line.ends_with(" kB"))
      if (const auto kb = parse_uint(line.substr(key.size(), line.size() - key.size() - 3)))
        return static_cast<double>(*kb) * 1024;
  return std::nullopt;
}

SensorInfo system_info(const CgroupUsage& cgroup) {
  using enum Behaviour;
  SensorInfo info;
  info.name = "system";
  info.interface = "procfs";
  info.interval = std::chrono::seconds(1);
  info.channels = {
      resource(Scope::system, "cpu_s", Quantity::duration, "s", counter, "busy time of all CPUs"),
      resource(Scope::system, "cpu_online_count", Quantity::count, "", gauge),
      resource(Scope::system, "memory_used_bytes", Quantity::bytes, "B", gauge, "MemTotal - MemAvailable"),
      resource(Scope::system, "disk_read_bytes", Quantity::bytes, "B", counter, "whole disks"),
      resource(Scope::system, "disk_written_bytes", Quantity::bytes, "B", counter, "whole disks"),
      resource(Scope::system, "network_received_bytes", Quantity::bytes, "B", counter, "physical interfaces, else all but lo"),
      resource(Scope::system, "network_sent_bytes", Quantity::bytes, "B", counter, "physical interfaces, else all but lo"),
  };
  if (!cgroup.memory_bytes.empty())
    info.channels.push_back(resource(Scope::system, "cgroup_memory_bytes", Quantity::bytes, "B", gauge, cgroup.memory_bytes.string()));
  const auto& cpu = cgroup.cpu_ns.empty() ? cgroup.cpu_stat : cgroup.cpu_ns;
  if (!cpu.empty()) info.channels.push_back(resource(Scope::system, "cgroup_cpu_s", Quantity::duration, "s", counter, cpu.string()));
  return info;
}

std::optional<KernelFile> optional_file(const fs::path& path) {
  if (path.empty()) return std::nullopt;
  return KernelFile(path);
}

class SystemSensor final : public Sensor {
 public:
  SystemSensor(const Host& host, const CgroupUsage& cgroup)
      : Sensor(system_info(cgroup)),
        stat_(host.root.path("/proc/stat"), kMaxBytes),
        meminfo_(host.root.path("/proc/meminfo"), 1 << 16),
        disks_(host.root),
        network_(host.root),
        cgroup_memory_(optional_file(cgroup.memory_bytes)),
        cgroup_cpu_(optional_file(cgroup.cpu_ns.empty() ? cgroup.cpu_stat : cgroup.cpu_ns)) {}

  Result<void> read(Readings& out) override {
    std::vector<std::optional<double>> values;
    const auto text = stat_.read();
    const auto stat = text ? parse_proc_stat(*text, ticks_per_s()) : std::nullopt;
    // Time spent waiting is not exact and may fall; busy time may fall with it by a tick.
    if (stat) busy_s_ = std::max(busy_s_, stat->all.busy_s);
    values.push_back(stat ? std::optional(busy_s_) : std::nullopt);
    values.push_back(stat ? std::optional(static_cast<double>(stat->cpus.size())) : std::nullopt);
    values.push_back(memory_used());
    push(values, disks_.update(), disks_.traffic);
    push(values, network_.update(), network_.traffic);
    if (cgroup_memory_) {
      const auto memory = cgroup_memory_->read();
      const auto bytes = memory ? parse_uint(*memory) : std::nullopt;
      values.push_back(bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt);
    }
    if (cgroup_cpu_) {
      const auto cpu = cgroup_cpu_->read();
      values.push_back(cpu ? cgroup_cpu_seconds(*cpu) : std::nullopt);
    }
    if (std::ranges::none_of(values, [](const auto& v) { return v.has_value(); }))
      return fail(ErrorCode::lost, "nothing of " + stat_.path().parent_path().string() + " can be read");
    out.add(std::move(values));
    return {};
  }

 private:
  static void push(std::vector<std::optional<double>>& values, bool known, const Traffic& traffic) {
    values.push_back(known ? std::optional(traffic.in.total()) : std::nullopt);
    values.push_back(known ? std::optional(traffic.out.total()) : std::nullopt);
  }
  std::optional<double> memory_used() {
    const auto text = meminfo_.read();
    if (!text) return std::nullopt;
    const auto total = meminfo_bytes(*text, "MemTotal:"), available = meminfo_bytes(*text, "MemAvailable:");
    if (!total || !available || *available > *total) return std::nullopt;
    return *total - *available;
  }

  KernelFile stat_, meminfo_;
  Disks disks_;
  Network network_;
  std::optional<KernelFile> cgroup_memory_, cgroup_cpu_;
  double busy_s_ = 0;
};

class CpusSensor final : public Sensor {
 public:
  CpusSensor(const Host& host, SensorInfo info, std::vector<int> cpus)
      : Sensor(std::move(info)),
        cpus_(std::move(cpus)),
        stat_(host.root.path("/proc/stat"), kMaxBytes),
        online_(host.root.path("/sys/devices/system/cpu/online"), 1 << 16) {}

  Result<void> read(Readings& out) override {
    const auto text = stat_.read();
    if (!text) return tl::unexpected(text.error());
    const auto stat = parse_proc_stat(*text, ticks_per_s());
    if (!stat) return fail(ErrorCode::corrupt, stat_.path().string() + " has no line of all CPUs");
    const auto list = online_.read();
    const auto online = list ? parse_cpu_list(*list) : std::nullopt;
    std::vector<std::optional<double>> values;
    for (const int cpu : cpus_) {
      const auto times = stat->cpus.find(cpu);
      const bool here = times != stat->cpus.end() && (!online || std::ranges::binary_search(*online, cpu));
      values.push_back(here ? std::optional(times->second.busy_s) : std::nullopt);
      report(cpu, here, out);
    }
    out.add(std::move(values));
    return {};
  }

 private:
  void report(int cpu, bool here, Readings& out) {
    auto& was = gone_[cpu];
    if (was == here) out.event(here ? "back" : "lost", fmt::format("CPU {} {}", cpu, here ? "online" : "offline"));
    was = !here;
  }
  std::vector<int> cpus_;
  KernelFile stat_, online_;
  std::map<int, bool> gone_;
};

}  // namespace

std::shared_ptr<Sensor> make_system_sensor(const Host& host) {
  return std::make_shared<SystemSensor>(host, find_cgroup_usage(host.root));
}

std::shared_ptr<Sensor> make_cpus_sensor(const Host& host) {
  auto cpus = online_cpus(host.root);
  if (cpus.empty()) return nullptr;
  SensorInfo info;
  info.name = "cpus";
  info.interface = "procfs";
  info.interval = std::chrono::seconds(1);
  for (const int cpu : cpus)
    info.channels.push_back(resource(Scope::system, fmt::format("cpu{}_busy_s", cpu), Quantity::duration, "s", Behaviour::counter));
  return std::make_shared<CpusSensor>(host, std::move(info), std::move(cpus));
}

}  // namespace ergometer::procfs
