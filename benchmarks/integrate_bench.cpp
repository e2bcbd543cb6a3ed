// How long analysis takes for one long trace: usage integrate_bench [SAMPLES [REGIONS]], default 100 million samples of
// a power channel at 20 ms and 10,000 regions of random place and length. Prints the seconds (of CPU too, for a busy
// machine), and checks the energy against the closed form, so that nothing is optimised away or left out. Needs 16
// bytes a sample and what analysis adds.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <numbers>
#include <random>

#include "analysis/summarise.hpp"
#include "base/number.hpp"

namespace {

using namespace ergometer;

constexpr std::int64_t kStepNs = 20'000'000, kBegin = 1'000'000'000;
// 300 W + 100 W sin: one turn takes 40 s.
constexpr double kMean = 300, kSwing = 100, kTurn = 2 * std::numbers::pi / 40;

double power_at(double t_s) { return kMean + kSwing * std::sin(kTurn * t_s); }
double energy_between(double a_s, double b_s) {
  return kMean * (b_s - a_s) - kSwing / kTurn * (std::cos(kTurn * b_s) - std::cos(kTurn * a_s));
}

Trace long_trace(std::size_t samples) {
  Channel channel;
  channel.column = "power_w";
  channel.quantity = Quantity::power;
  channel.unit = "W";
  channel.domain = "gpu/0";
  channel.scope = Scope::gpu;
  channel.method = Method::samples;
  auto trace = Trace::empty({"gpu0-samples", "nvml", {channel}, Nanos(kStepNs), true, {}});
  std::vector<double> values(samples);
  trace.t_ns.resize(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    const std::int64_t t = static_cast<std::int64_t>(i) * kStepNs;
    trace.t_ns[i] = kBegin + t;
    values[i] = power_at(static_cast<double>(t) / 1e9);
  }
  trace.columns[0] = Column(std::move(values), {});
  return trace;
}

std::vector<Region> random_regions(std::size_t count, std::int64_t length_ns) {
  std::mt19937_64 random(1);
  std::vector<Region> regions(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto longest = static_cast<std::uint64_t>(length_ns / 100);
    const auto begin = static_cast<std::int64_t>(random() % (static_cast<std::uint64_t>(length_ns) - longest));
    regions[i].begin = mono_ns(kBegin + begin);
    regions[i].end = mono_ns(kBegin + begin + static_cast<std::int64_t>(1 + random() % longest));
    regions[i].path = fmt::format("part[{}]", i);
  }
  return regions;
}

}  // namespace

int main(int argc, char** argv) {
  const auto samples = argc > 1 ? parse_uint(argv[1]) : std::optional<std::uint64_t>(100'000'000);
  const auto count = argc > 2 ? parse_uint(argv[2]) : std::optional<std::uint64_t>(10'000);
  if (!samples || !count || *samples < 1000 || *count < 1) {
    fmt::print(stderr, "usage: integrate_bench [SAMPLES [REGIONS]], at least 1000 and 1\n");
    return 2;
  }
  const auto trace = long_trace(*samples);
  const auto length = static_cast<std::int64_t>(*samples - 1) * kStepNs;
  Manifest manifest;
  manifest.state = "complete";
  manifest.begin = mono_ns(kBegin);
  manifest.end = mono_ns(kBegin + length);
  Node node;
  node.name = "n";
  node.sensors = {trace.info};
  auto regions = random_regions(*count, length);
  const auto begin = std::chrono::steady_clock::now();
  const auto cpu_begin = std::clock();
  Summariser summariser(manifest);
  summariser.add_node(node, std::move(regions), {});
  summariser.add_trace("n", trace);
  const auto summary = summariser.finish();
  const auto cpu_s = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  double worst = 0;
  for (const auto& region : summary.regions) {
    const double a = region.t_begin_s, b = a + region.duration_s;
    if (b - a < 60) continue;  // edges between samples weigh more
    worst = std::max(worst, std::abs(region.energy_j.value_or(0) / energy_between(a, b) - 1));
  }
  fmt::print(
      "{} samples over {} regions: {:.2f} s, {:.2f} s of CPU; largest error of a region of a minute or more: {:.2g}\n",
      *samples, summary.regions.size(), taken.count(), cpu_s, worst);
  return summary.regions.size() == *count && worst < 1e-3 ? 0 : 1;
}
