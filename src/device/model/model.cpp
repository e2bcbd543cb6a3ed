#include "device/model/model.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/number.hpp"
#include "device/cgroup.hpp"
#include "device/cpu_topology.hpp"
#include "device/kernel_file.hpp"
#include "device/proc_stat.hpp"

namespace ergometer {
namespace {

constexpr double kIdleShare = 0.3;  // of the TDP that an idle processor draws; 0.1 to 0.5 on real machines
constexpr double kWattsPerCpu = 5;  // TDP of a logical CPU where nobody gave one
constexpr std::size_t kMaxStatBytes = 4 << 20;

bool measures_processor(const Sensor& sensor) {
  return std::ranges::any_of(sensor.info().channels, [](const Channel& c) {
    const bool energy = c.quantity == Quantity::energy || c.quantity == Quantity::power;
    return energy && c.measured &&
           (c.scope == Scope::package || c.scope == Scope::psys || c.scope == Scope::node || c.scope == Scope::module);
  });
}

// What the estimate stands on.
struct Basis {
  double tdp_w = 0;    // of the part of the processor that this measurement may use
  double cpus = 1;     // logical CPUs of that part
  bool quota = false;  // a control group limits it
  std::string note;
};

Basis basis_of(const Host& host, const DiscoverOptions& options) {
  const auto online = online_cpus(host.root);
  const double all = online.empty() ? 1.0 : static_cast<double>(online.size());
  const auto limits = read_cgroup_limits(host.root);
  Basis b;
  b.quota = limits.cpus && *limits.cpus < all;
  b.cpus = b.quota ? *limits.cpus : all;
  const double tdp = options.cpu_tdp_w.value_or(kWattsPerCpu * all);
  b.tdp_w = tdp * b.cpus / all;
  b.note =
      fmt::format("estimated, not measured: {} W TDP ({}){}, idle at {} of it, rest with the share of busy CPU time",
                  format_double(b.tdp_w),
                  options.cpu_tdp_w
                      ? "as given"
                      : fmt::format("{} W for each logical CPU online, no TDP was given", format_double(kWattsPerCpu)),
                  b.quota ? fmt::format(" for the {} of {} CPUs that the control group allows", format_double(b.cpus),
                                        format_double(all))
                          : "",
                  format_double(kIdleShare));
  return b;
}

// Busy and available CPU seconds so far.
struct Use {
  double busy_s = 0, available_s = 0;
};

class ModelSensor final : public Sensor {
 public:
  ModelSensor(SensorInfo info, const Host& host, Basis basis, const std::filesystem::path& cgroup_cpu)
      : Sensor(std::move(info)),
        clock_(host.clock),
        basis_(std::move(basis)),
        stat_(host.root.path("/proc/stat"), kMaxStatBytes) {
    if (basis_.quota && !cgroup_cpu.empty()) cgroup_.emplace(cgroup_cpu);
  }

  Result<void> read(Readings& out) override {
    const auto now = clock_->now();
    const auto use = read_use(now);
    if (!use) return tl::unexpected(use.error());
    if (last_) {
      const double available = use->available_s - last_->second.available_s;
      // Within one tick of the kernel nothing is new: the last share goes on.
      if (available > 0) busy_ratio_ = std::clamp((use->busy_s - last_->second.busy_s) / available, 0.0, 1.0);
      const double dt = std::max(seconds(now - last_->first), 0.0);
      energy_j_ += dt * basis_.tdp_w * (kIdleShare + (1 - kIdleShare) * busy_ratio_);
    }
    last_ = std::pair(now, *use);
    out.add({energy_j_});
    return {};
  }

 private:
  // The group's own use where a quota holds and the group tells, else that of the node.
  Result<Use> read_use(MonoTime now) {
    auto& file = cgroup_ ? *cgroup_ : stat_;
    const auto text = file.read();
    if (!text) return tl::unexpected(text.error());
    if (cgroup_) {
      if (const auto used = cgroup_cpu_seconds(*text)) return Use{*used, seconds(now.time_since_epoch()) * basis_.cpus};
    } else if (const auto stat = parse_proc_stat(*text, static_cast<double>(::sysconf(_SC_CLK_TCK)))) {
      return Use{stat->all.busy_s, stat->all.total_s};
    }
    return fail(ErrorCode::corrupt, file.path().string() + " holds no CPU time");
  }

  std::shared_ptr<Clock> clock_;
  Basis basis_;
  KernelFile stat_;
  std::optional<KernelFile> cgroup_;
  std::optional<std::pair<MonoTime, Use>> last_;
  double busy_ratio_ = 0;
  double energy_j_ = 0;
};

}  // namespace

void discover_model(const Host& host, const DiscoverOptions& options, Discovery& out) {
  if (std::ranges::any_of(out.sensors, [](const auto& sensor) { return measures_processor(*sensor); })) return;
  auto basis = basis_of(host, options);
  Channel c;
  c.column = "cpu_energy_j";
  c.quantity = Quantity::energy;
  c.unit = "J";
  c.behaviour = Behaviour::counter;
  c.domain = "package/model";
  c.device = "CPU";
  c.scope = Scope::package;
  c.method = Method::model;
  c.measured = false;
  c.in_total = false;
  c.note = basis.note;
  SensorInfo info;
  info.name = "model";
  info.interface = "model";
  info.interval = std::max(options.interval.value_or(Nanos{0}), Nanos(std::chrono::milliseconds(500)));
  info.note = basis.note;
  info.channels.push_back(std::move(c));
  const auto usage = find_cgroup_usage(host.root);
  out.sensors.push_back(std::make_shared<ModelSensor>(std::move(info), host, std::move(basis),
                                                      usage.cpu_ns.empty() ? usage.cpu_stat : usage.cpu_ns));
}

}  // namespace ergometer
