// The power traces of Zeus (NSDI'23) through the import and the decision, against the published numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/decision.hpp"
#include "analysis/effects.hpp"
#include "analysis/scaling.hpp"
#include "analysis/study_slice.hpp"
#include "base/file.hpp"
#include "store/import/import.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::foreign {
namespace {

class Zeus : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = test::shared_dir() / "traces" / "zeus";
    if (test::shared_dir().empty() || !std::filesystem::exists(folder))
      GTEST_SKIP() << "no recorded traces beside the checkout (set ERGOMETER_SHARED)";
    std::vector<std::pair<std::string, StudyTable>> studies;
    for (const char* name : {"power_v100", "power_a40"}) {
      const auto text = read_file(folder / (std::string(name) + ".csv"));
      ASSERT_TRUE(text);
      auto imported = import_text(*text, name);
      ASSERT_TRUE(imported) << imported.error().message;
      studies.emplace_back(name, std::get<StudyTable>(std::move(*imported)));
    }
    table_ = join_studies(std::move(studies));
  }

  std::vector<Option> options(const LevelsByFactor& fixed) {
    const auto cells = cells_at(table_, fixed);
    EXPECT_TRUE(cells);
    auto out = options_of(table_, "seconds_per_epoch", "energy_per_epoch_j", *cells);
    EXPECT_TRUE(out);
    return *out;
  }

  // Rounded as in print.
  static double percent(double share) { return std::round(share * 1000) / 10; }

  void expect_pick(const std::optional<Pick>& pick, const std::vector<Option>& of, const char* name, double energy,
                   double time) {
    ASSERT_TRUE(pick);
    EXPECT_EQ(of[pick->best].name, name);
    EXPECT_EQ(percent(pick->energy.share), energy);
    EXPECT_EQ(percent(pick->time.share), time);
    EXPECT_FALSE(pick->intervals_known) << "each setting was measured once";
  }

  StudyTable table_;
};

TEST_F(Zeus, EveryRowIsThere) {
  EXPECT_EQ(table_.runs.size(), 476U + 453U);
  EXPECT_TRUE(table_.warnings.empty());
}

TEST_F(Zeus, ResNet50OnAV100) {
  const auto all = options(
      {{"file", "power_v100"}, {"dataset", "imagenet"}, {"network", "resnet50"}, {"batch_size", "256"}});
  ASSERT_EQ(all.size(), 7U);
  const std::size_t reference = reference_option(table_, all, "power_limit");
  EXPECT_EQ(all[reference].name, "250W");
  EXPECT_NEAR(all[reference].time_s.value, 3515.0, 0.05);
  EXPECT_NEAR(all[reference].energy_j.value, 774.2e3, 50);
  expect_pick(least_energy(all, reference), all, "150W", -22.5, 18.0);
  expect_pick(least_energy_within(all, reference, 0.1), all, "175W", -17.2, 9.6);
}

TEST_F(Zeus, BertBaseOnAV100) {
  const auto all = options(
      {{"file", "power_v100"}, {"dataset", "squad"}, {"network", "bert_base_uncased"}, {"batch_size", "32"}});
  ASSERT_EQ(all.size(), 7U);
  const std::size_t reference = reference_option(table_, all, "power_limit");
  EXPECT_NEAR(all[reference].energy_j.value, 395.6e3, 50);
  expect_pick(least_energy(all, reference), all, "150W", -17.8, 28.1);
  expect_pick(least_energy_within(all, reference, 0.1), all, "200W", -10.9, 6.3);
}

TEST_F(Zeus, ResNet50OnAnA40) {
  const auto all = options(
      {{"file", "power_a40"}, {"dataset", "imagenet"}, {"network", "resnet50"}, {"batch_size", "256"}});
  ASSERT_EQ(all.size(), 9U);
  const std::size_t reference = reference_option(table_, all, "power_limit");
  expect_pick(least_energy(all, reference), all, "200W", -19.1, 7.2);
  expect_pick(least_energy_within(all, reference, 0.1), all, "200W", -19.1, 7.2);
}

TEST_F(Zeus, CostOfZeusGoesFromTheFastestToTheMostFrugal) {
  const auto all = options(
      {{"file", "power_v100"}, {"dataset", "imagenet"}, {"network", "resnet50"}, {"batch_size", "256"}});
  const std::size_t reference = reference_option(table_, all, "power_limit");
  EXPECT_EQ(all[least_zeus_cost(all, reference, 0, 250)->best].name, "250W");
  EXPECT_EQ(all[least_zeus_cost(all, reference, 1, 250)->best].name, "150W");
  // eta 0.5: half of E + 250 W T. 175 W: 0.5 (640.9 + 963.0) kJ; 200 W: 0.5 (684.5 + 925.2) kJ.
  const auto half = least_zeus_cost(all, reference, 0.5, 250);
  EXPECT_EQ(all[half->best].name, "175W");
  EXPECT_NEAR(half->score, 0.5 * (3852.18 * 166.37217540170334 + 250 * 3852.18), 1);
  // 100 W and 125 W cost more of both than 150 W.
  EXPECT_EQ(pareto_front(all).front.size(), 5U);
}

TEST_F(Zeus, EffectOfTheCapOverBatches) {
  auto cells = cells_at(table_, {{"file", "power_v100"}, {"network", "resnet50"}});
  ASSERT_TRUE(cells);
  StudyTable part = table_;
  std::erase_if(part.runs, [&](const StudyRun& r) { return std::find(cells->begin(), cells->end(), r.cell) == cells->end(); });
  const auto effects = effects_of(part, "energy_per_epoch_j");
  ASSERT_TRUE(effects) << effects.error().message;
  ASSERT_EQ(effects->effects.size(), 3U);
  EXPECT_EQ(part.factors[effects->effects[1].factors[0]].name, "power_limit");
  EXPECT_TRUE(effects->effects[0].levels.size() == 8 && effects->effects[1].levels.size() == 7);
}

}  // namespace
}  // namespace ergometer::foreign
