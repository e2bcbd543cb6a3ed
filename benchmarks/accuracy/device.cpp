#include "accuracy/device.hpp"

#include <algorithm>
#include <cmath>

#include "device/profiles.hpp"

namespace ergometer::accuracy {
namespace {

Channel channel(std::string column, std::string domain, Scope scope, Method method, double max_power_w) {
  Channel c;
  c.column = std::move(column);
  const bool counter = method == Method::counter;
  c.quantity = counter ? Quantity::energy : Quantity::power;
  c.unit = counter ? "J" : "W";
  c.behaviour = counter ? Behaviour::counter : Behaviour::gauge;
  c.domain = std::move(domain);
  c.scope = scope;
  c.method = method;
  c.resolution = counter ? 1e-6 : 1e-3;
  c.max_power_w = max_power_w;
  return c;
}

Case gpu(const std::string& profile, const std::string& name, double low_w, double high_w, bool samples) {
  Case c{profile, "nvml", {}, {}, low_w, high_w};
  GpuInfo info;
  info.name = name;
  c.node.gpus = {info};
  const auto add = [&](const char* column, Method method, double interval_s, bool own_time = false) {
    c.readings.push_back({channel(column, "gpu/0", Scope::gpu, method, high_w), interval_s, own_time});
  };
  if (samples) add("power_w", Method::samples, 0.5, true);
  if (profile != "v100" && profile != "a100") add("power_average_w", Method::average, 0.1);
  add("power_instant_w", Method::integral, samples ? 0.2 : 0.1);
  add("energy_j", Method::counter, samples ? 5 : 1);
  return c;
}

Case cpu(const std::string& profile, const std::string& model, double low_w, double high_w) {
  Case c{profile, "rapl-perf", {}, {}, low_w, high_w};
  c.node.cpu.model = model;
  c.readings = {{channel("package_0_energy_j", "package/0", Scope::package, Method::counter, high_w), 0.1, false}};
  return c;
}

Case meter(const std::string& profile, const std::string& interface, const std::string& column, Method method,
           double interval_s, double low_w, double high_w, bool own_time = false) {
  Case c{profile, interface, {}, {}, low_w, high_w};
  c.readings = {{channel(column, "node", Scope::node, method, high_w), interval_s, own_time}};
  c.readings[0].channel.resolution.reset();
  return c;
}

double rounded(double value, double resolution) {
  return resolution > 0 ? std::round(value / resolution) * resolution : value;
}

// What the device shows at the update times up to now; updates come one after another.
class Updates {
 public:
  Updates(const Channel& c, const Drawn& drawn, const Load& load, double begin, Random& random, const Rhythm& rhythm)
      : c_(c), drawn_(drawn), load_(load), random_(random), rhythm_(rhythm) {
    period_ = c.period ? seconds(*c.period) : 0.001;
    if (!rhythm.exact) period_ *= 1 + uniform(random, -0.01, 0.01);
    next_ = begin - uniform(random, 0, period_);
    low_passed_ = load.power(begin);
    last_ = next_;
  }
  [[nodiscard]] double next() const { return next_; }
  double take() {
    const double delay = c_.delay ? seconds(*c_.delay) : 0, t = next_ - delay;
    double value = 0;
    if (c_.behaviour == Behaviour::counter) {
      value = load_.energy(t) / drawn_.gain;
    } else if (rhythm_.low_pass_s > 0 && c_.method == Method::samples) {
      value = (low_pass(t) - drawn_.offset_w) / drawn_.gain;
    } else {
      const double window = c_.window ? seconds(*c_.window) : 0;
      const double mean = window > 0 ? (load_.energy(t) - load_.energy(t - window)) / window : load_.power(t);
      value = (mean - drawn_.offset_w) / drawn_.gain;
    }
    // Updates come a little early or late, around a steady rhythm.
    ++count_;
    const double jitter = rhythm_.exact ? 0 : uniform(random_, -0.1, 0.1) * period_;
    next_ = std::max(next_ + 0.1 * period_, last_ + period_ * count_ + jitter);
    return std::max(0.0, rounded(value, c_.resolution.value_or(0)));
  }

 private:
  double low_pass(double t) {
    constexpr double kStep = 0.0005;
    if (passed_ == 0) passed_ = t - 0.1;
    for (; passed_ < t; passed_ += kStep)
      low_passed_ += (load_.power(passed_) - low_passed_) * (1 - std::exp(-kStep / rhythm_.low_pass_s));
    return low_passed_;
  }
  const Channel& c_;
  const Drawn& drawn_;
  const Load& load_;
  Random& random_;
  Rhythm rhythm_;
  double period_ = 0, next_ = 0, last_ = 0, low_passed_ = 0, passed_ = 0, count_ = 0;
};

Trace record_one(const Reading& reading, const std::string& name, const Drawn& drawn, const Load& load, double begin,
                 double end, Random& random, const Rhythm& rhythm) {
  SensorInfo info;
  info.name = name;
  info.interval = from_seconds(reading.interval_s);
  info.own_time = reading.own_time;
  info.channels = {reading.channel};
  Trace trace = Trace::empty(info);
  Updates updates(info.channels[0], drawn, load, begin, random, rhythm);
  if (reading.own_time) {
    while (updates.next() < end) {
      const double t = updates.next();
      trace.push(Row{mono_ns(from_seconds(t + drawn.mapping_s).count()), Nanos{0}, {updates.take()}});
    }
    return trace;
  }
  double shown = updates.take();
  const double phase = uniform(random, 0, reading.interval_s);
  for (double t = begin + phase; t < end; t += reading.interval_s) {
    const double at = t + uniform(random, 0, 0.0005);
    while (updates.next() <= at) shown = updates.take();
    trace.push(Row{mono_ns(from_seconds(at).count()), Nanos{20'000}, {shown}});
  }
  // A counter that is read seldom is read at the end as well.
  if (reading.interval_s >= 1 && reading.channel.behaviour == Behaviour::counter) {
    while (updates.next() <= end) shown = updates.take();
    trace.push(Row{mono_ns(from_seconds(end).count()), Nanos{20'000}, {shown}});
  }
  return trace;
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> out{gpu("v100", "Tesla V100-SXM2-16GB", 40, 300, false),
                        gpu("a100", "NVIDIA A100-SXM4-40GB", 55, 400, false),
                        gpu("h100", "NVIDIA H100 80GB HBM3", 70, 700, true),
                        gpu("h200", "NVIDIA H200", 75, 700, true),
                        gpu("rtx3090", "NVIDIA GeForce RTX 3090", 25, 350, false),
                        gpu("rtx4090", "NVIDIA GeForce RTX 4090", 20, 450, false),
                        cpu("xeon", "Intel(R) Xeon(R) Platinum 8480+", 60, 350),
                        cpu("epyc", "AMD EPYC 9654 96-Core Processor", 80, 400),
                        meter("grace", "hwmon", "grace_0_power_w", Method::average, 0.1, 40, 300),
                        meter("dcmi", "ipmi", "node_power_w", Method::integral, 1, 200, 1200),
                        meter("xcc", "ipmi", "node_energy_j", Method::counter, 1, 200, 1200),
                        meter("pm_counters", "cray", "node_energy_j", Method::counter, 0.1, 300, 2500, true)};
  auto& cray = out.back().readings;
  cray.push_back(cray[0]);
  cray[1].channel = channel("node_power_w", "node", Scope::node, Method::integral, 2500);
  cray[1].channel.resolution.reset();
  for (auto& c : out)
    for (auto& reading : c.readings) {
      std::vector<Channel> one{reading.channel};
      apply_profiles(built_in_profiles(), c.node, c.interface, one);
      reading.channel = one[0];
    }
  return out;
}

Drawn draw(const Case& device, Random& random) {
  Drawn out;
  const auto& c = device.readings[0].channel;
  out.gain = std::max(0.1, 1 + normal(random, c.gain_tolerance.value_or(0) / 1.96));
  out.offset_w = normal(random, c.offset_tolerance_w.value_or(0) / 1.96);
  out.mapping_s = normal(random, 0.25e-3);
  return out;
}

std::vector<Trace> record(const Case& device, const Drawn& drawn, const Load& load, double begin, double end,
                          Random& random, const Rhythm& rhythm) {
  std::vector<Trace> out;
  for (const auto& reading : device.readings)
    out.push_back(record_one(reading, "s" + std::to_string(out.size()), drawn, load, begin, end, random, rhythm));
  return out;
}

}  // namespace ergometer::accuracy
