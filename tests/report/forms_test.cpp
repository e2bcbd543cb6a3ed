// A summary in the forms of other programs, and pictures in the terminal: golden files and what names may not do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "report/github_benchmark.hpp"
#include "report/latex.hpp"
#include "report/openmetrics.hpp"
#include "report/sparkline.hpp"
#include "report/supercloud.hpp"
#include "report/text.hpp"
#include "report/trace_events.hpp"
#include "support/golden.hpp"

namespace ergometer::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two epochs on a GPU and a package; the second epoch's energy is unknown.
Summary two_epochs() {
  Summary s;
  s.run.duration_s = 20.0;
  s.run.energy_j = 5000.0;
  s.run.uncertainty_j = 41.0;
  NodeSummary node;
  node.name = "n";
  for (const auto& [domain, scope, energy] :
       {std::tuple{"gpu/0", Scope::gpu, 4000.0}, std::tuple{"package/0", Scope::package, 1000.0}}) {
    DomainEnergy d;
    d.domain = domain;
    d.device = std::string("chip \"") + domain + "\"";
    d.scope = scope;
    d.method = Method::counter;
    d.energy_j = energy;
    d.mean_power_w = energy / 20;
    d.coverage = 1;
    node.domains.push_back(d);
  }
  DomainEnergy unknown;
  unknown.domain = "dram/0";
  unknown.scope = Scope::dram;
  node.domains.push_back(unknown);
  s.nodes = {node};
  for (int i = 0; i < 2; ++i) {
    RegionEnergy r;
    r.path = "train_1/epoch[" + std::to_string(i) + "]";
    r.name = "epoch";
    r.t_begin_s = 10.0 * i;
    r.duration_s = 10;
    if (i == 0) r.energy_j = 2500.0, r.uncertainty_j = 30.0;
    s.regions.push_back(r);
  }
  return s;
}

Manifest named(const std::string& name) {
  Manifest m;
  m.name = name;
  m.state = "complete";
  return m;
}

TEST(Latex, Golden) { expect_golden("run.tex", summary_latex(named("a_b & <c>"), two_epochs())); }

TEST(Latex, NumbersEndWhereTheirUncertaintyDoes) {
  EXPECT_EQ(latex_number(1234.567, 12.0), "$1235 \\pm 12$");
  EXPECT_EQ(latex_number(1.23456, 0.012), "$1.235 \\pm 0.012$");
  EXPECT_EQ(latex_number(774177.0, 5400.0), "$774177 \\pm 5400$");
  EXPECT_EQ(latex_number(12.345, std::nullopt), "$12.35$");
  EXPECT_EQ(latex_number(std::nullopt, 1.0), "--");
  EXPECT_EQ(latex_number(std::numeric_limits<double>::quiet_NaN(), 1.0), "--");
  EXPECT_EQ(latex_number(0.0, std::nullopt), "$0$");
}

TEST(Latex, NamesAreNoCommands) {
  EXPECT_EQ(latex_text("\\input{x} 5% #1 a_b ~^ $&\n\x01"),
            "\\textbackslash{}input\\{x\\} 5\\% \\#1 a\\_b \\textasciitilde{}\\textasciicircum{} \\$\\&");
}

TEST(OpenMetrics, Golden) { expect_golden("run.openmetrics", summary_openmetrics(named("r"), two_epochs())); }

// An exposition line without a number breaks the whole scrape.
TEST(OpenMetrics, F104_NoLineWithoutANumber) {
  Summary s = two_epochs();
  s.run.energy_j = std::numeric_limits<double>::quiet_NaN();
  const auto text = summary_openmetrics(named("x\"y\\z\nw"), s);
  EXPECT_THAT(text, Not(HasSubstr("ergometer_run_energy_joules{")));
  EXPECT_THAT(text, Not(HasSubstr("dram/0")));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, HasSubstr("run=\"x\\\"y\\\\z\\nw\""));
  EXPECT_TRUE(text.ends_with("# EOF\n"));
  EXPECT_EQ(summary_openmetrics(named(""), Summary{}), "# EOF\n");
}

TEST(GithubBenchmark, Golden) { expect_golden("run.benchmark.json", summary_github_benchmark(named("r"), two_epochs())); }

TEST(GithubBenchmark, UnknownEnergyIsNoEntry) {
  const auto json = nlohmann::json::parse(summary_github_benchmark(named("r"), two_epochs()));
  for (const auto& entry : json) EXPECT_NE(entry["name"], "train_1/epoch: energy") << "one of the two is unknown";
  EXPECT_EQ(nlohmann::json::parse(summary_github_benchmark(named("r"), Summary{})).size(), 0U);
}

TEST(Sparkline, LevelsAndGaps) {
  const std::vector<std::optional<double>> values{0.0, 50.0, std::nullopt, 100.0, 200.0};
  EXPECT_EQ(sparkline(values, 100), "\xE2\x96\x81\xE2\x96\x84 \xE2\x96\x88\xE2\x96\x88");
  EXPECT_EQ(sparkline(std::vector<std::optional<double>>(3), 100), "");
  EXPECT_EQ(sparkline(values, 0), "");
}

TEST(Sparkline, Bars) {
  EXPECT_EQ(bar(1.0, 2), "\xE2\x96\x88\xE2\x96\x88");
  EXPECT_EQ(bar(0.5, 1), "\xE2\x96\x8C");
  EXPECT_EQ(bar(1e-9, 10), "\xE2\x96\x8F");
  EXPECT_EQ(bar(0.0, 10), "");
  EXPECT_EQ(bar(std::nullopt, 10), "");
}

// A line over the gap would claim power that nobody measured.
TEST(Sparkline, F124_NothingIsDrawnAcrossMissingData) {
  TextOptions options;
  options.power = {{"gpu/0", {100.0, std::nullopt, std::nullopt, 50.0}}};
  EXPECT_THAT(render_text(named("r"), two_epochs(), options), HasSubstr("gpu/0  \xE2\x96\x88  \xE2\x96\x84  highest 100.0 W"));
  options.power = {{"gpu/0", {std::nullopt, std::nullopt}}};
  EXPECT_THAT(render_text(named("r"), two_epochs(), options), Not(HasSubstr("Power over time")));
}

TEST(Show, Golden) {
  TextOptions options;
  options.power = {{"gpu/0", {100.0, 200.0, 300.0, 200.0}}, {"package/0", {50.0, 50.0, std::nullopt, 50.0}}};
  expect_golden("show.txt", render_text(named("r"), two_epochs(), options));
}

Trace power_trace() {
  SensorInfo info;
  info.name = "gpu0";
  Channel power;
  power.column = "power_w";
  power.quantity = Quantity::power;
  power.unit = "W";
  power.domain = "gpu/0";
  Channel energy = power;
  energy.column = "energy_j";
  energy.quantity = Quantity::energy;
  energy.behaviour = Behaviour::counter;
  Channel active = power;
  active.column = "gpu_active_ratio";
  active.quantity = Quantity::ratio;
  info.channels = {power, energy, active};
  Trace t = Trace::empty(info);
  t.push({mono_ns(1000000000), Nanos{0}, {100.5, 10.0, 0.5}});
  t.push({mono_ns(2000000000), Nanos{0}, {std::nullopt, 210.0, 0.25}});
  t.push({mono_ns(3000000000), Nanos{0}, {300.0, 5.0, std::nullopt}});
  return t;
}

TEST(TraceEvents, Golden) {
  const TraceClock clock({{mono_ns(0), wall_ns(1700000000000000000)}}, 0);
  std::string out;
  append_process(out, 5000000, "n \"1\" </script>");
  append_counters(out, power_trace(), 5000000, clock, 0, 3);
  Region r{mono_ns(1500000000), mono_ns(2500000123), false, 42, 43, -1, "train/epoch[3]", {{"loss", "0.5"}}};
  append_slices(out, {r}, clock);
  expect_golden("run.trace.json", "[" + out.substr(0, out.size() - 2) + "]\n");
  EXPECT_TRUE(nlohmann::json::accept("[" + out.substr(0, out.size() - 2) + "]"));
}

TEST(TraceEvents, ClockFollowsItsPairs) {
  // The wall clock gains a second between the pairs: half of it in the middle.
  const TraceClock clock({{mono_ns(0), wall_ns(1000)}, {mono_ns(10000000000), wall_ns(11000001000)}}, 1000);
  EXPECT_EQ(clock.since_base_ns(0), 0);
  EXPECT_EQ(clock.since_base_ns(5000000000), 5500000000);
  EXPECT_EQ(clock.since_base_ns(20000000000), 21000000000);
  EXPECT_EQ(clock.since_base_ns(-5), -5);
  EXPECT_EQ(clock.microseconds(-1500), "-1.500");
}

TEST(TraceEvents, PlaceInAPytorchTrace) {
  const std::string text =
      R"({"schemaVersion": 1, "traceName": "a \"traceEvents\": [", "deviceProperties": [{"traceEvents": [1]}],
          "baseTimeNanoseconds": 1700000000000000000, "traceEvents" : [ {"ph": "X"} ]})";
  const auto place = inspect_torch_trace(text, "FILE");
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(place->base_ns, 1700000000000000000);
  EXPECT_TRUE(place->has_events);
  EXPECT_EQ(text.substr(place->insert_at, 13), " {\"ph\": \"X\"} ");
  EXPECT_FALSE(inspect_torch_trace(R"({"traceEvents": []})", "FILE")->has_events);
  EXPECT_EQ(inspect_torch_trace(R"({"traceEvents": []})", "FILE")->base_ns, 0);
  for (const char* bad : {"", "[]", "{}", R"({"traceEvents": 5})", R"({"traceEvents": [)", R"({"x": {"traceEvents": []}})"})
    EXPECT_FALSE(inspect_torch_trace(bad, "FILE")) << bad;
}

TEST(Supercloud, RowsAtTheTimesOfTheUtilisation) {
  const Trace gauges = power_trace();
  Trace power = Trace::empty({"gpu0-samples", "", {gauges.info.channels[0]}, Nanos{0}, true, ""});
  for (int i = 0; i < 20; ++i) power.push({mono_ns(900000000 + 20000000 * i), Nanos{0}, {i * 1.0}});
  const auto rows = supercloud_rows({&power, &gauges}, 3, {{mono_ns(0), wall_ns(1700000000000000000)}});
  // The dense power is used where it is not older than three of its distances.
  EXPECT_EQ(rows,
            "1700000001.000000,3,50,,,,,,5,\n"
            "1700000002.000000,3,25,,,,,,,\n"
            "1700000003.000000,3,25,,,,,,,\n");
  EXPECT_EQ(supercloud_rows({}, 0, {}), "");
}

}  // namespace
}  // namespace ergometer::test
