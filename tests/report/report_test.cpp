// Text, JSON and CSV of summaries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <locale>
#include <nlohmann/json.hpp>

#include "base/csv.hpp"
#include "base/number.hpp"
#include "report/csv.hpp"
#include "report/json.hpp"
#include "report/table.hpp"
#include "report/text.hpp"
#include "report/units.hpp"

namespace ergometer::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

DomainEnergy gpu_domain(double energy, double seconds, std::string name = "gpu/0") {
  DomainEnergy d;
  d.domain = std::move(name);
  d.device = "GPU-12345678-aaaa";
  d.scope = Scope::gpu;
  d.method = Method::samples;
  d.energy_j = energy;
  d.uncertainty_j = energy / 100;
  d.mean_power_w = energy / seconds;
  d.max_power_w = 1.5 * energy / seconds;
  d.coverage = 1;
  return d;
}

RegionEnergy region_of(std::string path, double begin, double seconds, double energy) {
  RegionEnergy r;
  r.path = std::move(path);
  r.name = r.path.substr(r.path.rfind('/') + 1);
  r.t_begin_s = begin;
  r.duration_s = seconds;
  r.energy_j = energy;
  r.uncertainty_j = energy / 50;
  r.coverage = 1;
  r.domains = {gpu_domain(energy, seconds)};
  return r;
}

Summary small_run() {
  Summary s;
  s.run.duration_s = 100.0;
  s.run.exit_code = 0;
  s.run.energy_j = 12000.0;
  s.run.uncertainty_j = 41.0;
  NodeSummary node;
  node.name = "host";
  node.domains = {gpu_domain(12000, 100)};
  s.nodes = {node};
  return s;
}

Manifest small_manifest() {
  Manifest m;
  m.name = "demo";
  m.command = {"python", "train.py", "two words"};
  m.state = "complete";
  return m;
}

std::string text_of(const Summary& s, int width = 100, GroupBy by = GroupBy::epoch) {
  return render_text(small_manifest(), s, {width, by, false});
}

TEST(Units, FourDigitsAndAPrefix) {
  EXPECT_EQ(with_unit(1440000, "J"), "1.440 MJ");
  EXPECT_EQ(with_unit(999.96, "J"), "1.000 kJ");
  EXPECT_EQ(with_unit(999.94, "J"), "999.9 J");
  EXPECT_EQ(with_unit(0, "J"), "0 J");
  EXPECT_EQ(with_unit(0.0123, "J"), "12.30 mJ");
  EXPECT_EQ(with_unit(-51.5, "J"), "-51.50 J");
  EXPECT_EQ(with_unit(std::optional<double>{}, "J"), "\xE2\x80\x94");
  EXPECT_EQ(with_unit(std::nan(""), "J"), "\xE2\x80\x94");
  EXPECT_EQ(with_unit(41, "J", 2), "41 J");
  EXPECT_EQ(duration_text(0.05), "0.050 s");
  EXPECT_EQ(duration_text(3723), "1 h 02 min 03 s");
  EXPECT_EQ(percent_text(0.9876), "98.8 %");
  EXPECT_EQ(percent_text(1), "100 %");
}

TEST(Units, F14_BytesAreConvertedOnce) {
  EXPECT_EQ(bytes_text(17179869184.0), "16.0 GiB");
  EXPECT_EQ(bytes_text(512), "512 B");
}

TEST(Table, LeavesOutTheLeastImportantColumns) {
  Table t;
  t.columns = {{"Name", false, 0}, {"A", true, 1}, {"Bbbb", true, 2}, {"Empty", true, 0}};
  t.rows = {{"x", "1", "22", ""}, {"longer", "333", "4", ""}};
  EXPECT_EQ(render_table(t, 80, 0), "Name      A  Bbbb\nx         1    22\nlonger  333     4\n");
  EXPECT_EQ(render_table(t, 14, 0), "Name      A\nx         1\nlonger  333\n");
  EXPECT_EQ(shortened("abcdefghij", 6), "abcd..");
  EXPECT_EQ(shortened("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 4), "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9");
  EXPECT_EQ(printable("a\x1b[31mb\n\xC2\x9B"), "a?[31mb???");
}

TEST(Text, SmallRunIsExactly) {
  EXPECT_EQ(text_of(small_run()),
            "demo: exit 0\n"
            "  command   python train.py 'two words'\n"
            "  duration  100.0 s\n"
            "  energy    12.00 kJ (3.333 Wh) \xC2\xB1 41 J, mean 120.0 W\n"
            "\n"
            "  Domain  Device               Energy      \xC2\xB1     Mean      Max  Covered  Method          In total\n"
            "  gpu/0   GPU-12345678-aaaa  12.00 kJ  120 J  120.0 W  180.0 W    100 %  driver samples  yes\n");
}

TEST(Text, PartsOfADomainAreTold) {
  Summary s = small_run();
  DomainEnergy memory = s.nodes[0].domains[0];
  memory.scope = Scope::memory;
  memory.in_total = false;
  memory.note = "part of its GPU";
  s.nodes[0].domains.push_back(memory);
  const auto text = text_of(s);
  EXPECT_NE(text.find("gpu/0 memory"), std::string::npos) << text;
  EXPECT_NE(text.find("not in the total: gpu/0 memory (part of its GPU)"), std::string::npos) << text;
}

TEST(Text, LossesComeBeforeOtherNumbers) {
  Summary s = small_run();
  auto r = region_of("train/epoch[0]", 0, 1, 10);
  r.metrics = {{"alpha", 7}, {"loss", 0.5}, {"validation_loss", 0.6}};
  s.regions.push_back(r);
  const auto text = text_of(s);
  EXPECT_LT(text.find("loss"), text.find("validation_loss")) << text;
  EXPECT_LT(text.find("validation_loss"), text.find("alpha")) << text;
}

TEST(Text, RepeatedRegionsShowTheirEstimate) {
  Summary s = small_run();
  auto r = region_of("train/epoch/step", 0, 1, 10);
  r.count = 100;
  r.energy_j.reset();
  r.modelled_j = 200;
  s.regions.push_back(r);
  EXPECT_NE(text_of(s).find("~2.0 J"), std::string::npos) << text_of(s);
}

Summary epochs() {
  Summary s = small_run();
  for (int i = 0; i < 4; ++i) {
    auto r = region_of("train/epoch[" + std::to_string(i) + "]", i, 1, 10);
    r.metrics = {{"loss", 0.5 / (i + 1)},      {"samples", 100},
                 {"energy_per_sample_j", 0.1}, {"gpu/0/sm_active_ratio", 0.83},
                 {"tree/cpu_ratio", 1.25},     {"gpu/0/peak_memory_used_bytes", 3.0 * 1024 * 1024 * 1024}};
    s.regions.push_back(r);
  }
  s.regions.push_back(region_of("train/epoch[4]", 4, 0.5, 5));
  s.regions.back().cut = true;
  return s;
}

TEST(Text, F134_CompleteAndCutEpochsAreTwoNumbers) {
  const auto text = text_of(epochs());
  EXPECT_THAT(text, HasSubstr("train/epoch: 4 complete, mean 10.00 J each; 1 cut\n"));
  EXPECT_THAT(text, HasSubstr("train/epoch[4] (cut)"));
}

TEST(Text, EpochTableIsExactly) {
  Summary s = epochs();
  s.regions.resize(2);
  const auto text = text_of(s, 120);
  EXPECT_EQ(
      text.substr(text.find("  Region")),
      "  Region          Time s   Energy       \xC2\xB1    Power  J/sample  CPU cores  SM active   GPU mem  loss  "
      "samples\n"
      "  train/epoch[0]   1.000  10.00 J  200 mJ  10.00 W       0.1       1.25       83 %  3.00 GiB   0.5      100\n"
      "  train/epoch[1]   1.000  10.00 J  200 mJ  10.00 W       0.1       1.25       83 %  3.00 GiB  0.25      100\n"
      "\n"
      "  train/epoch: 2 complete, mean 10.00 J each\n");
}

TEST(Text, FitsEveryWidth) {
  Summary s = epochs();
  s.warnings = {
      {"code", std::string(50, 'w') + " " + std::string(60, 'x') + " and so on", "remedy with several words in it"}};
  s.nodes[0].domains[0].note = "a long note that says why it is not in the total and more";
  s.nodes[0].domains[0].in_total = false;
  for (const int width : {80, 100, 200}) {
    const auto text = text_of(s, width);
    for (std::size_t pos = 0; pos < text.size();) {
      const auto end = text.find('\n', pos);
      EXPECT_LE(display_width(text.substr(pos, end - pos)), static_cast<std::size_t>(width))
          << text.substr(pos, end - pos);
      pos = end + 1;
    }
  }
}

TEST(Text, ByPhaseAndByDomain) {
  Summary s = epochs();
  s.regions.insert(s.regions.begin(), region_of("train", 0, 4.5, 45));
  s.regions.push_back(region_of("infer", 5, 2, 8));
  s.regions.back().domains.push_back(gpu_domain(3, 2, "gpu/1"));
  const auto phases = text_of(s, 100, GroupBy::phase);
  EXPECT_THAT(phases, HasSubstr("\n  train "));
  EXPECT_THAT(phases, HasSubstr("\n  infer "));
  EXPECT_THAT(phases, Not(HasSubstr("epoch")));
  const auto domains = text_of(s, 100, GroupBy::domain);
  EXPECT_THAT(domains, HasSubstr("  Region                  Total    gpu/0    gpu/1\n"));
  EXPECT_THAT(domains, HasSubstr("  infer                 8.000 J  8.000 J  3.000 J\n"));
}

TEST(Text, RepeatedStepsShareARow) {
  Summary s = small_run();
  for (int i = 0; i < 1000; ++i)
    s.regions.push_back(region_of("train/step[" + std::to_string(i) + "]", i, 0.1, i % 2 ? 9 : 11));
  const auto text = text_of(s);
  EXPECT_THAT(text, HasSubstr("train/step   1000        0.100      10.00 J  \xC2\xB1 1.0 J  100.0 W  10.00 kJ\n"));
  EXPECT_THAT(text, Not(HasSubstr("step[")));
}

TEST(Text, EstimatesAreMarked) {
  Summary s = small_run();
  DomainEnergy cpu;
  cpu.domain = "package/0";
  cpu.scope = Scope::package;
  cpu.method = Method::model;
  cpu.measured = false;
  cpu.in_total = false;
  cpu.energy_j = 5000;
  cpu.uncertainty_j = 3000;
  cpu.coverage = 1;
  s.nodes[0].domains.push_back(cpu);
  s.run.modelled_j = 5000;
  const auto text = text_of(s);
  EXPECT_THAT(text, HasSubstr("  estimate  ~5.0 kJ, not measured and not in the energy\n"));
  EXPECT_THAT(text, HasSubstr("~ marks an estimate"));
  EXPECT_THAT(text, HasSubstr("energy    12.00 kJ"));
  EXPECT_THAT(text_of(small_run()), Not(HasSubstr("~")));
}

TEST(Text, F123_UnitsMatchTheirColumns) {
  const auto text = text_of(epochs(), 120);
  // Each energy cell ends in J, each power cell in W.
  EXPECT_THAT(text, HasSubstr("energy    12.00 kJ (3.333 Wh) \xC2\xB1 41 J, mean 120.0 W"));
  EXPECT_THAT(text, HasSubstr("10.00 J  200 mJ  10.00 W"));
}

TEST(Text, F124_AGapIsStated) {
  Summary s = small_run();
  s.run.partial = true;
  s.nodes[0].domains[0].coverage = 0.2857;
  s.warnings = {
      {"sample-gap", "gpu/0 (sensor gpu0) has 1 gap, the longest 50 s: up to 5000 J are not in its energy", ""}};
  const auto text = text_of(s);
  EXPECT_THAT(text, HasSubstr("28.6 %"));
  EXPECT_THAT(text, HasSubstr(", partial\n"));
  EXPECT_THAT(text, HasSubstr("the longest 50 s"));
}

TEST(Text, F125_MeanOverTheGpusThatReported) {
  Summary s = small_run();
  auto r = region_of("train", 0, 60, 100);
  r.domains = {gpu_domain(25, 60, "gpu/0"), gpu_domain(25, 60, "gpu/1"), gpu_domain(25, 60, "gpu/2"),
               gpu_domain(25, 60, "gpu/3")};
  for (const char* gpu : {"gpu/0", "gpu/2", "gpu/3"}) r.metrics[std::string(gpu) + "/sm_active_ratio"] = 1.0;
  s.regions = {r};
  EXPECT_THAT(text_of(s), HasSubstr("100 % (3 of 4)"));
  s.regions[0].metrics.clear();
  EXPECT_THAT(text_of(s), Not(HasSubstr("SM active")));
  EXPECT_THAT(text_of(s), Not(HasSubstr(" 0 %")));
}

TEST(Text, F128_SparseRunsHaveAReport) {
  Summary s;
  EXPECT_THAT(render_text(Manifest{}, s, {}), HasSubstr("energy    not measured\n"));
  s.run.energy_j = 42;
  s.run.duration_s = 1;
  NodeSummary node;
  node.domains.resize(1);
  node.domains[0].domain = "package/0";
  node.domains[0].scope = Scope::package;
  node.domains[0].energy_j = 42;
  s.nodes = {node};
  const auto text = text_of(s);
  EXPECT_THAT(text, HasSubstr("42.00 J"));
  EXPECT_THAT(text, HasSubstr("no GPU data"));
}

TEST(Text, F129_SentencesDependOnTheData) {
  EXPECT_THAT(text_of(small_run()), Not(HasSubstr("estimate")));
  EXPECT_THAT(text_of(small_run()), Not(HasSubstr("idle")));
  EXPECT_THAT(text_of(small_run()), Not(HasSubstr("epoch")));
  EXPECT_THAT(text_of(small_run()), Not(HasSubstr("Warning")));
}

TEST(Text, NamesCannotSteerTheTerminal) {
  Manifest m = small_manifest();
  m.name = "x\x1b]0;owned\x07";
  m.command = {"printf", "\x1b[2J"};
  Summary s = small_run();
  s.regions = {region_of("evil\x1b[31m", 0, 1, 1)};
  s.warnings = {{"w", "message \x1b[0m", ""}};
  EXPECT_THAT(render_text(m, s, {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(render_text(m, s, {100, GroupBy::epoch, true}), HasSubstr("\x1b[1m"));
}

TEST(Json, KeysOthersRelyOn) {
  Summary s = epochs();
  s.run.valid = true;
  s.overhead_cpu_s = 0.5;
  s.warnings = {{"code", "message", "remedy"}};
  s.nodes[0].domains[0].alternatives = {{Method::counter, 11990.0, {}, {}}, {Method::average, {}, {}, {}}};
  const auto j = json::parse(summary_json(s));
  EXPECT_EQ(j["schema"], "ergometer.summary/1");
  EXPECT_EQ(j["run"]["duration_s"], 100.0);
  EXPECT_EQ(j["run"]["exit_code"], 0);
  EXPECT_EQ(j["run"]["energy_j"], 12000.0);
  EXPECT_EQ(j["run"]["uncertainty_j"], 41.0);
  EXPECT_EQ(j["run"]["valid"], true);
  EXPECT_EQ(j["run"]["mean_power_w"], 120.0);
  const auto& d = j["nodes"][0]["domains"][0];
  EXPECT_EQ(d["domain"], "gpu/0");
  EXPECT_EQ(d["scope"], "gpu");
  EXPECT_EQ(d["method"], "samples");
  const json first = {
      {"method", "counter"}, {"energy_j", 11990.0}, {"uncertainty_j", nullptr}, {"difference_j", nullptr}};
  const json second = {
      {"method", "average"}, {"energy_j", nullptr}, {"uncertainty_j", nullptr}, {"difference_j", nullptr}};
  EXPECT_EQ(d["alternatives"], json::array({first, second}));
  EXPECT_EQ(d["in_total"], true);
  EXPECT_EQ(j["regions"].size(), 5u);
  EXPECT_EQ(j["regions"][0]["metrics"]["loss"], 0.5);
  EXPECT_EQ(j["regions"][0]["net_energy_j"], nullptr);
  EXPECT_EQ(j["overhead"]["cpu_s"], 0.5);
  EXPECT_EQ(j["overhead"]["cpu_share"], nullptr);
  EXPECT_EQ(j["warnings"][0]["remedy"], "remedy");
  EXPECT_EQ(summary_json(s), summary_json(s));
  // The agreed keys come first and in the agreed order.
  EXPECT_THAT(summary_json(s), testing::MatchesRegex("[^\x01]*\"duration_s\"[^\x01]*\"exit_code\"[^\x01]*\"energy_j\"[^"
                                                     "\x01]*\"uncertainty_j\"[^\x01]*\"valid\"[^\x01]*"));
}

TEST(Json, F103_WhatIsNotANumberIsNull) {
  Summary s = small_run();
  s.run.duration_s = 0.0;
  s.run.energy_j = std::numeric_limits<double>::quiet_NaN();
  s.nodes[0].domains[0].mean_power_w = std::numeric_limits<double>::infinity();
  s.nodes[0].domains[0].energy_j.reset();
  s.regions = {region_of("a", 0, 1, 1)};
  s.regions[0].metrics["ratio"] = -std::numeric_limits<double>::quiet_NaN();
  const auto text = summary_json(s);
  ASSERT_TRUE(json::accept(text));
  const auto j = json::parse(text);
  EXPECT_TRUE(j["run"]["energy_j"].is_null());
  EXPECT_TRUE(j["run"]["mean_power_w"].is_null());
  EXPECT_TRUE(j["nodes"][0]["domains"][0]["mean_power_w"].is_null());
  EXPECT_TRUE(j["nodes"][0]["domains"][0]["energy_j"].is_null());
  EXPECT_TRUE(j["regions"][0]["metrics"]["ratio"].is_null());
}

TEST(Json, BrokenUtf8IsReplaced) {
  Summary s = small_run();
  s.regions = {region_of("a\xFF", 0, 1, 1)};
  EXPECT_TRUE(json::accept(summary_json(s)));
}

TEST(Csv, F99_EveryRowHasEveryField) {
  Summary s = epochs();
  s.nodes[0].domains[0].uncertainty_j.reset();
  s.nodes[0].domains[0].note = "a, \"quoted\"\nnote";
  s.regions[1].domains.clear();
  const auto table = parse_csv(summary_csv(s), "summary.csv");  // refuses rows of another length
  ASSERT_TRUE(table.has_value()) << table.error().message;
  ASSERT_EQ(table->rows.size(), 6u);
  const auto cell = [&](std::size_t row, const char* name) { return table->rows[row][table->column(name).value()]; };
  EXPECT_EQ(cell(0, "level"), "run");
  EXPECT_EQ(cell(0, "uncertainty_j"), "");
  EXPECT_EQ(cell(0, "note"), "a, \"quoted\"\nnote");
  EXPECT_EQ(cell(1, "path"), "train/epoch[0]");
  EXPECT_EQ(cell(1, "energy_j"), "10");
  EXPECT_EQ(cell(2, "energy_j"), "");
  EXPECT_EQ(cell(5, "cut"), "true");
}

TEST(Csv, F111_NoDecimalCommaWhateverTheHostSet) {
  const std::locale before;
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale::global(std::locale(std::locale::classic(), new Comma));
  Summary s = small_run();
  s.run.energy_j = 1234567.5;
  s.nodes[0].domains[0].energy_j = 1234567.5;
  const std::string csv = summary_csv(s), js = summary_json(s), text = text_of(s);
  std::locale::global(before);
  EXPECT_THAT(csv, HasSubstr(",1234567.5,"));
  EXPECT_THAT(js, HasSubstr("\"energy_j\": 1234567.5,"));
  EXPECT_THAT(text, HasSubstr("1.235 MJ"));
}

TEST(Report, SharesAreShownWhereOthersWereSeen) {
  auto s = small_run();
  s.nodes[0].attributions = {{"gpu/0", "sm_share", 750.0, 450, 850, Sharing::shared, ""},
                             {"gpu/1", "sm_share", std::nullopt, 0, 1000, Sharing::unknown, "some could not be told"},
                             {"gpu/2", "mig_slices", std::nullopt, 57, 657, Sharing::shared, "why"},
                             {"package/0", "cpu_time", 10.0, 5, 20, Sharing::alone, ""}};
  const auto text = render_text({}, s, {});
  EXPECT_THAT(text, HasSubstr("gpu/0 is shared: this command's part by sm_share is about 750 J (450 J to 850 J)"));
  EXPECT_THAT(text, HasSubstr("gpu/2 is shared: this command's part by mig_slices is 57.0 J to 657 J; why"));
  EXPECT_THAT(text, Not(HasSubstr("gpu/1 is")));
  EXPECT_THAT(text, Not(HasSubstr("cpu_time")));
  const auto j = json::parse(summary_json(s))["nodes"][0]["attributions"];
  ASSERT_EQ(j.size(), 4u) << "the file has them all";
  EXPECT_EQ(j[0]["energy_j"], 750.0);
  EXPECT_EQ(j[0]["sharing"], "shared");
  EXPECT_TRUE(j[1]["energy_j"].is_null());
  EXPECT_EQ(j[1]["upper_j"], 1000.0);
  EXPECT_EQ(j[1]["sharing"], "unknown");
}

Summary whole_node() {
  Summary s = small_run();
  s.run.shortcuts = {16800.0, 12120.0};
  NodeAccount a;
  a.energy_j = 20000;
  a.uncertainty_j = 1000;
  a.metered = true;
  NodePart gpu;
  gpu.domain = "gpu/0";
  gpu.sensor = "gpu0-samples (nvml)";
  gpu.energy_j = 12000;
  gpu.uncertainty_j = 120;
  gpu.share = 0.6;
  gpu.idle_j = 7800;
  gpu.net_j = 4200;
  gpu.net_uncertainty_j = 50;
  gpu.tdp_w = 168;
  gpu.mean_power_w = 121.2;
  gpu.shortcuts = s.run.shortcuts;
  NodePart idle = gpu;
  idle.domain = "gpu/1";
  idle.role = PartRole::idle_gpu;
  idle.note = "no CUDA context";
  idle.energy_j = 3000;
  idle.share = 0.15;
  idle.net_j.reset();
  a.parts = {gpu, idle};
  a.rest_j = 5000;
  a.rest_uncertainty_j = 1100;
  a.unmeasured = {"dram", "6 fans"};
  a.idle_gpus = 1;
  a.idle_gpu_j = 3000;
  a.idle_gpu_uncertainty_j = 30;
  a.idle_gpu_share = 0.15;
  s.nodes[0].account = a;
  Baseline b;
  b.domain = "gpu/0";
  b.before_w = 78;
  b.before_uncertainty_w = 0.5;
  b.before = "no CUDA context";
  b.idle_w = 78;
  s.nodes[0].baselines = {b};
  return s;
}

TEST(Text, WholeNodeTable) {
  const auto text = text_of(whole_node(), 130);
  EXPECT_THAT(text, HasSubstr("  instead   time x TDP 16.80 kJ (+40 %), time x mean power 12.12 kJ (+1.0 %)\n"));
  EXPECT_THAT(text, HasSubstr("  idle GPUs 1 took 3.000 kJ \xC2\xB1 30 J, 15 % of the node's energy\n"));
  EXPECT_THAT(text, HasSubstr("gpu/0                          12.00 kJ   120 J   60 %  7.800 kJ  4.200 kJ"));
  EXPECT_THAT(text, HasSubstr("gpu/1 (idle, no CUDA context)  3.000 kJ"));
  EXPECT_THAT(text, HasSubstr("unexplained rest               5.000 kJ  1.1 kJ   25 %"));
  EXPECT_THAT(text, HasSubstr("in the rest, with no reading of their own: dram, 6 fans\n"));
  EXPECT_THAT(text, HasSubstr("gpu/0       78.00 W \xC2\xB1 500 mW  no CUDA context"));
  EXPECT_THAT(text, Not(HasSubstr("Instead of measuring"))) << "by domain only";
  Summary s = whole_node();
  s.nodes[0].account->metered = false;
  s.nodes[0].account->rest_j.reset();
  EXPECT_THAT(text_of(s, 130), HasSubstr("nobody measures: dram, 6 fans\n"));
  EXPECT_THAT(text_of(s, 130), Not(HasSubstr("unexplained")));
}

TEST(Text, ShortcutsStandBesideTheMeasurement) {
  Summary s = whole_node();
  auto r = region_of("train", 0, 10, 100);
  r.shortcuts = {150.0, 95.0};
  s.regions = {r};
  const auto text = text_of(s, 130, GroupBy::domain);
  EXPECT_THAT(text, HasSubstr("Instead of measuring"));
  EXPECT_THAT(text, HasSubstr("+40 %"));
  EXPECT_THAT(text, HasSubstr("Time x mean"));
  EXPECT_THAT(text, HasSubstr("+50 %"));
  EXPECT_THAT(text, HasSubstr("-5.0 %"));
}

TEST(Json, AccountBaselinesAndShortcuts) {
  const auto out = json::parse(summary_json(whole_node()));
  const auto& node = out["nodes"][0];
  EXPECT_EQ(node["account"]["parts"][1]["role"], "idle_gpu");
  EXPECT_EQ(node["account"]["parts"][1]["note"], "no CUDA context");
  EXPECT_TRUE(node["account"]["parts"][1]["net_j"].is_null());
  EXPECT_EQ(node["account"]["rest_j"], 5000);
  EXPECT_EQ(node["account"]["idle_gpus"]["share"], 0.15);
  EXPECT_EQ(node["account"]["unmeasured"], json({"dram", "6 fans"}));
  EXPECT_EQ(node["baselines"][0]["before_state"], "no CUDA context");
  EXPECT_TRUE(node["baselines"][0]["after_w"].is_null());
  EXPECT_NEAR(out["run"]["shortcuts"]["tdp_error"].get<double>(), 0.4, 1e-12);
  EXPECT_TRUE(json::parse(summary_json(small_run()))["nodes"][0]["account"].is_null());
}

}  // namespace
}  // namespace ergometer::test
