#include "device/fake/fake.hpp"

#include <cmath>

#include "device/fake/scenario.hpp"

namespace ergometer {
namespace {

using fake::Fault;
using fake::SensorSpec;

SensorInfo describe(const SensorSpec& spec) {
  Channel channel;
  channel.column = spec.counter ? "energy_j" : "power_w";
  channel.quantity = spec.counter ? Quantity::energy : Quantity::power;
  channel.unit = spec.counter ? "J" : "W";
  channel.behaviour = spec.counter ? Behaviour::counter : Behaviour::gauge;
  channel.domain = spec.domain;
  channel.device = spec.device;
  channel.scope = spec.scope;
  channel.method = spec.method;
  channel.measured = spec.measured;
  channel.in_total = spec.in_total;
  channel.range = spec.range_j;
  channel.period = spec.update_period;
  channel.max_power_w = spec.max_power_w;
  channel.note = "fake: follows a scenario, not a measurement";
  return SensorInfo{spec.name, "fake", {channel}, spec.interval, false, "scenario"};
}

class FakeSensor final : public Sensor {
 public:
  FakeSensor(SensorSpec spec, std::shared_ptr<Clock> clock)
      : Sensor(describe(spec)), spec_(std::move(spec)), clock_(std::move(clock)), start_(clock_->now()) {}

  Result<void> read(Readings& out) override {
    Nanos now = clock_->now() - start_;
    if (const auto* block = active(Fault::Kind::block, now)) {
      StopSignal never;
      clock_->sleep_until(start_ + block->to, never);
      now = clock_->now() - start_;
    }
    if (active(Fault::Kind::lost, now))
      return fail(ErrorCode::lost, "fake sensor " + spec_.name + " is lost by its scenario");
    if (active(Fault::Kind::missing, now)) {
      out.add({std::nullopt});
      return {};
    }
    if (!active(Fault::Kind::stuck, now)) last_ = value_at(now);
    out.add({last_});
    return {};
  }

 private:
  const Fault* active(Fault::Kind kind, Nanos now) const {
    for (const auto& fault : spec_.faults)
      if (fault.kind == kind && now >= fault.from && now < fault.to) return &fault;
    return nullptr;
  }

  double value_at(Nanos now) const {
    if (spec_.update_period) now -= now % *spec_.update_period;
    const double t_s = seconds(now);
    if (!spec_.counter) {
      const auto* spike = active(Fault::Kind::spike, now);
      return spike ? spike->value : spec_.shape.power_w(t_s);
    }
    double base_s = 0, initial_j = spec_.initial_j;
    for (const auto& fault : spec_.faults) {
      if (fault.kind != Fault::Kind::reset || now < fault.from) continue;
      base_s = seconds(fault.from);
      initial_j = 0;
    }
    const double energy_j = initial_j + spec_.shape.energy_j(t_s) - spec_.shape.energy_j(base_s);
    return spec_.range_j ? std::fmod(energy_j, *spec_.range_j) : energy_j;
  }

  SensorSpec spec_;
  std::shared_ptr<Clock> clock_;
  MonoTime start_;
  std::optional<double> last_;
};

}  // namespace

Result<void> discover_fake(const Host& host, const std::string& file, Discovery& out) {
  const auto text = read_file(file);
  if (!text) return tl::unexpected(text.error());
  auto specs = fake::parse_scenario(*text, file);
  if (!specs) return tl::unexpected(specs.error());
  for (auto& spec : *specs) out.sensors.push_back(std::make_shared<FakeSensor>(std::move(spec), host.clock));
  return {};
}

}  // namespace ergometer
