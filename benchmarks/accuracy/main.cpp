// How near the estimates come to the truth, and whether their intervals hold it: on simulated devices of every built-in
// profile. Prints the tables of docs/results/accuracy.md. usage: accuracy [SEED] [REGIONS]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "accuracy/device.hpp"
#include "analysis/summarise.hpp"

namespace ergometer::accuracy {
namespace {

constexpr double kRun = 70;  // seconds of one simulated run

Region region(std::string path, double begin, double end) {
  Region r;
  r.path = std::move(path);
  r.begin = mono_ns(from_seconds(begin).count());
  r.end = mono_ns(from_seconds(end).count());
  return r;
}

Summary analyse(const Case& device, const std::vector<Trace>& traces, std::vector<Region> regions, double end) {
  Manifest manifest;
  manifest.state = "complete";
  manifest.begin = mono_ns(0);
  manifest.end = mono_ns(from_seconds(end).count());
  Node node = device.node;
  node.name = "simulated";
  Summariser s(manifest);
  s.add_node(node, std::move(regions), {});
  for (const auto& t : traces) s.add_trace(node.name, t);
  return s.finish();
}

// Errors of many regions against their stated half-widths.
struct Score {
  std::size_t n = 0, held = 0;
  double error2 = 0, width2 = 0, z2 = 0, relative = 0, relative2 = 0;
  void add(double error, double half_width, double truth) {
    ++n;
    held += std::abs(error) <= half_width ? 1 : 0;
    error2 += error * error;
    width2 += half_width * half_width / (1.96 * 1.96);
    z2 += std::pow(1.96 * error / half_width, 2);
    relative += error / truth;
    relative2 += std::pow(error / truth, 2);
  }
  [[nodiscard]] double coverage() const { return 100 * static_cast<double>(held) / static_cast<double>(n); }
  // Stated over actual spread: of all together, and of each region's own scale.
  [[nodiscard]] double width() const { return std::sqrt(width2 / error2); }
  [[nodiscard]] double own_width() const { return std::sqrt(static_cast<double>(n) / z2); }
  [[nodiscard]] double bias() const { return 100 * relative / static_cast<double>(n); }
  [[nodiscard]] double spread() const {
    const double mean = relative / static_cast<double>(n);
    return 100 * std::sqrt(std::max(0.0, relative2 / static_cast<double>(n) - mean * mean));
  }
};

void every_profile(std::uint64_t seed, std::size_t regions) {
  constexpr std::size_t kPerRun = 20;
  std::printf(
      "| profile | regions | covered | stated / actual spread | the same, by region's own scale | below 0.2 s | 0.2 to "
      "2 s | above 2 s |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const auto& device : cases()) {
    Random random(seed * 1000003 + std::hash<std::string>{}(device.name));
    Score all, by_length[3];
    while (all.n < regions) {
      const Load load = random_load(random, -5, kRun + 5, device.low_w, device.high_w);
      const auto traces = record(device, draw(device, random), load, -3, kRun + 0.5, random);
      std::vector<Region> wanted;
      for (std::size_t i = 0; i < kPerRun; ++i) {
        const double length = log_uniform(random, 0.02, 60), begin = uniform(random, 0, kRun - length);
        wanted.push_back(region("r", begin, begin + length));
      }
      const auto summary = analyse(device, traces, wanted, kRun);
      for (const auto& r : summary.regions) {
        if (!r.energy_j || all.n == regions) continue;
        const double truth = load.energy(r.t_begin_s + r.duration_s) - load.energy(r.t_begin_s);
        const int length = r.duration_s < 0.2 ? 0 : (r.duration_s < 2 ? 1 : 2);
        for (Score* s : {&all, &by_length[length]}) s->add(*r.energy_j - truth, *r.uncertainty_j, truth);
      }
    }
    std::printf("| %s | %zu | %.1f %% | %.2f | %.2f | %.1f %% | %.1f %% | %.1f %% |\n", device.name.c_str(), all.n,
                all.coverage(), all.width(), all.own_width(), by_length[0].coverage(), by_length[1].coverage(),
                by_length[2].coverage());
    std::fflush(stdout);
  }
}

const Case& named(const std::vector<Case>& all, const std::string& name) {
  for (const auto& c : all)
    if (c.name == name) return c;
  std::abort();
}

// What a tool gets that subtracts the counter's newest values at the edges.
double stepped(const Trace& energy, double begin, double end) {
  const auto newest = [&](double t) {
    double value = *energy.columns[0][0];
    for (std::size_t i = 0; i < energy.rows() && static_cast<double>(energy.t_ns[i]) * 1e-9 <= t; ++i)
      value = *energy.columns[0][i];
    return value;
  };
  return newest(end) - newest(begin);
}

void short_regions(std::uint64_t seed) {
  std::printf(
      "\n| H200-like, 600 W steps at the marks | regions | bias | standard deviation | covered | counter difference: "
      "bias, standard deviation |\n");
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  const auto all = cases();
  for (const double low_pass : {0.0, 0.014}) {
    for (const auto& [on, off] : {std::pair{0.1, 0.1}, std::pair{0.03, 0.05}}) {
      Case device = named(all, "h200");
      device.readings.back().interval_s = 0.053;  // as often as a tool that reads at each edge would
      Random random(seed);
      Score score, counter;
      for (int run = 0; run < 40; ++run) {
        std::vector<double> marks;
        Drawn drawn = draw(device, random);
        const Load load = pulses(-2, 12, on, off, 120, 720, marks);
        const auto traces = record(device, drawn, load, -1.9, 12, random, Rhythm{false, low_pass});
        std::vector<Region> wanted;
        for (const double m : marks)
          if (m > 0 && m < 11) wanted.push_back(region("on", m, m + on));
        for (const auto& r : analyse(device, traces, wanted, 11.5).regions) {
          const double truth = load.energy(r.t_begin_s + r.duration_s) - load.energy(r.t_begin_s);
          // The gain is told apart: it is the same in every region.
          score.add(*r.energy_j * drawn.gain - truth, *r.uncertainty_j, truth);
          counter.add(stepped(traces.back(), r.t_begin_s, r.t_begin_s + r.duration_s) * drawn.gain - truth, truth,
                      truth);
        }
      }
      std::printf("| %s, %g ms | %zu | %+.1f %% | %.1f %% | %.1f %% | %+.1f %%, %.1f %% |\n",
                  low_pass > 0 ? "low-pass of 14 ms" : "window of the profile", on * 1e3, score.n, score.bias(),
                  score.spread(), score.coverage(), counter.bias(), counter.spread());
    }
  }
}

bool has_warning(const Summary& summary, std::string_view code) {
  return std::any_of(summary.warnings.begin(), summary.warnings.end(),
                     [&](const Warning& w) { return w.code == code; });
}

// A load that repeats in the rhythm of a sensor that looks at a quarter of the time: with the power readings alone and
// with the energy counter beside them.
void part_time(std::uint64_t seed) {
  std::printf(
      "\n| A100-like, 1 s windows of a square wave | windows | bias | standard deviation | covered | phase-locked | "
      "methods-disagree |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- |\n");
  const auto all = cases();
  for (const bool counter : {false, true}) {
    for (const double period : {5.0, 0.2, 0.1}) {
      for (const bool locked : {false, true}) {
        Case device = named(all, "a100");
        if (!counter) device.readings.pop_back();
        Random random(seed + 7);
        Score score;
        int in_step = 0, apart = 0, runs = 100;
        for (int run = 0; run < runs; ++run) {
          Load load(-5);
          load.hold(uniform(random, 0, period), 80);
          while (load.end() < 40) {
            load.hold(period / 2, 350);
            load.hold(period / 2, 80);
          }
          const auto traces = record(device, draw(device, random), load, -3, 31, random, Rhythm{locked, 0});
          std::vector<Region> wanted;
          for (int i = 0; i < 30; ++i) wanted.push_back(region(fmt::format("step[{}]", i), i, i + 1));
          const auto summary = analyse(device, traces, wanted, 30);
          in_step += has_warning(summary, "phase-locked") ? 1 : 0;
          apart += has_warning(summary, "methods-disagree") ? 1 : 0;
          for (const auto& r : summary.regions) {
            const double truth = load.energy(r.t_begin_s + r.duration_s) - load.energy(r.t_begin_s);
            score.add(*r.energy_j - truth, *r.uncertainty_j, truth);
          }
        }
        std::printf("| %s, period %g s, %s | %zu | %+.1f %% | %.1f %% | %.1f %% | %d of %d runs | %d |\n",
                    counter ? "with the counter" : "power alone", period,
                    locked ? "sensor exactly in step" : "sensor drifts", score.n, score.bias(), score.spread(),
                    score.coverage(), in_step, runs, apart);
      }
    }
  }
}

// Runs without any lock that are flagged all the same, and runs whose methods agree that are told not to.
void false_alarms(std::uint64_t seed) {
  constexpr int kRuns = 500;
  std::printf(
      "\n| false alarms in %d runs of random loads | steps of random length: phase-locked | steps of 1.037 s: "
      "phase-locked | methods-disagree |\n",
      kRuns);
  std::printf("| --- | --- | --- | --- |\n");
  for (const auto& device : cases()) {
    int locked[2] = {0, 0}, apart = 0;
    for (const bool steady : {false, true}) {
      Random random(seed * 31 + std::hash<std::string>{}(device.name) + (steady ? 1 : 0));
      for (int run = 0; run < kRuns; ++run) {
        const Load load = random_load(random, -5, 36, device.low_w, device.high_w);
        const auto traces = record(device, draw(device, random), load, -3, 31, random);
        std::vector<Region> wanted;
        for (double t = uniform(random, 0, 1); t < 28;) {
          const double length = steady ? 1.037 : uniform(random, 0.8, 1.4);
          wanted.push_back(region(fmt::format("step[{}]", wanted.size()), t, t + length));
          t += length;
        }
        const auto summary = analyse(device, traces, wanted, 30);
        locked[steady] += has_warning(summary, "phase-locked") ? 1 : 0;
        apart += has_warning(summary, "methods-disagree") ? 1 : 0;
      }
    }
    std::printf("| %s | %d | %d | %d of %d |\n", device.name.c_str(), locked[0], locked[1], apart, 2 * kRuns);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace ergometer::accuracy

int main(int argc, char** argv) {
  using namespace ergometer::accuracy;
  const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::size_t regions = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10'000;
  std::printf("seed %llu\n\n", static_cast<unsigned long long>(seed));
  every_profile(seed, regions);
  short_regions(seed);
  part_time(seed);
  false_alarms(seed);
}
