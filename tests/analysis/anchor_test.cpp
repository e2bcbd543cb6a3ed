// A counter that is read seldom with a power channel between its readings, and what it says against that channel.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "analysis/build_run.hpp"

namespace ergometer::test {
namespace {

// 100 W, and 500 W in the first 0.3 s of each second.
double load_w(double t) { return t - std::floor(t) < 0.3 ? 500 : 100; }
double load_j(double t) {
  const double whole = std::floor(t);
  return 220 * whole + 100 * (t - whole) + 400 * std::min(t - whole, 0.3);
}

Trace seldom(double every) {
  Channel c = counter("gpu/0", Scope::gpu);
  c.period = Nanos(1'000'000);
  return trace("energy", c, readings_of([](double t) { return 50 + load_j(t); }, 0, 40, every), every);
}

// Looks at the last millisecond of each 50.
Trace dense(const std::function<double(double)>& p) {
  Channel c = power("gpu/0", Scope::gpu);
  c.period = std::chrono::milliseconds(50);
  c.window = std::chrono::milliseconds(1);
  c.sampled_share = 0.02;
  return trace("power", c, readings_of(p, 0, 41, 0.05), 0.05, true);
}

const DomainEnergy& line(const Summary& s, std::size_t i) { return domain(s.regions.at(i).domains, "gpu/0"); }

TEST(Anchor, TheCounterFixesTheSumAndThePowerItsShape) {
  const std::vector<Region> regions{region("pulse", 10, 10.3), region("pause", 12.4, 12.9), region("long", 7.3, 21.3)};
  const auto s = summarise(run_of(0, 37), {seldom(3.7), dense(load_w)}, regions);
  // Alone the counter knows nothing of what is between its readings.
  const auto alone = summarise(run_of(0, 37), {seldom(3.7)}, regions);
  EXPECT_LT(*line(alone, 1).energy_j, 0.3 * 300);
  const auto by_counter = [](const DomainEnergy& e) {
    if (e.method == Method::counter) return std::pair(*e.energy_j, *e.uncertainty_j);
    for (const auto& a : e.alternatives)
      if (a.method == Method::counter) return std::pair(*a.energy_j, *a.uncertainty_j);
    return std::pair(0.0, 0.0);
  };
  // Regions are listed by their begin.
  const std::vector<double> truths{load_j(21.3) - load_j(7.3), 150, 50};
  const std::vector<double> allowed{40, 25, 15};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto [energy, width] = by_counter(line(s, i));
    EXPECT_NEAR(energy, truths[i], allowed[i]) << i;
    EXPECT_NEAR(energy, truths[i], width) << i;
    EXPECT_LT(std::abs(energy - truths[i]), std::abs(*line(alone, i).energy_j - truths[i])) << i;
  }
  EXPECT_EQ(line(s, 0).method, Method::counter);
}

TEST(Anchor, SteadyReadingsThatTheCounterContradictsAreNotBelieved) {
  // The power channel meets the load always in its pulse.
  const auto always_on = [](double) { return 500.0; };
  const std::vector<Region> regions{region("a", 4.5, 5.5), region("b", 20, 30)};
  const auto s = summarise(run_of(0, 40), {seldom(1), dense(always_on)}, regions);
  EXPECT_EQ(count_warnings(s, "methods-disagree"), 1u);
  EXPECT_NEAR(*s.run.energy_j, 40 * 220, 10);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(line(s, i).method, Method::counter) << i;
  EXPECT_NEAR(*line(s, 1).energy_j, 2200, 20);
  // Right on the whole and wrong in each second: only the single stretches between the counter's readings tell.
  const auto wandering = [](double t) { return 220 + 180 * std::sin(t * 2 * std::numbers::pi / 10); };
  const auto w = summarise(run_of(0, 40), {seldom(1), dense(wandering)}, {region("a", 2, 3)});
  EXPECT_EQ(line(w, 0).method, Method::counter);
  EXPECT_NEAR(*line(w, 0).energy_j, 220, 5);
}

TEST(Anchor, AChannelThatCoversLessDoesNotDisagree) {
  const auto short_counter =
      trace("energy", counter("gpu/0", Scope::gpu), readings_of([](double t) { return 100 * t; }, 0, 30, 5), 5);
  const auto s = summarise(run_of(0, 40), {short_counter, dense([](double) { return 100.0; })});
  EXPECT_EQ(count_warnings(s, "methods-disagree"), 0u);
  EXPECT_NEAR(*s.run.energy_j, 4000, 1);
}

}  // namespace
}  // namespace ergometer::test
