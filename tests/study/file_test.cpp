// Study files: what they say, and that every mistake is named with its line and what to write instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/built_in_studies.hpp"
#include "study/cell_command.hpp"
#include "study/design.hpp"
#include "study/plan.hpp"
#include "study/study_file.hpp"

namespace ergometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kHead = "name = \"t\"\ncommand = \"./train --batch {batch}\"\n[factors]\nbatch = [16, 32]\n";

StudyFile good(const std::string& text, const StudyOverrides& overrides = {}) {
  auto file = parse_study_file(text, "t.toml", overrides);
  EXPECT_TRUE(file) << (file ? "" : file.error().message + "\n" + file.error().hint);
  return file ? *file : StudyFile{};
}

struct Mistake {
  const char *name, *text, *message, *hint;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

std::string name_of_mistake(const testing::TestParamInfo<Mistake>& tested) { return tested.param.name; }

class StudyFileMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(StudyFileMistakes, AreNamedWithLineAndRemedy) {
  const auto& mistake = GetParam();
  std::string text = mistake.text;
  if (text.starts_with("+")) text = kHead + text.substr(1);
  const auto file = parse_study_file(text, "t.toml");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr(mistake.message));
  EXPECT_THAT(file.error().hint, HasSubstr(mistake.hint));
}

INSTANTIATE_TEST_SUITE_P(
    All, StudyFileMistakes,
    testing::Values(
        Mistake{"no_toml", "name = t", "t.toml:1:", "TOML"},
        Mistake{"unknown_key", "+[runs]\nrepetition = 3\n", "t.toml:6: unknown key \"repetition\" of [runs]", "did you mean \"repetitions\"?"},
        Mistake{"unknown_table", "+[run]\nrepetitions = 3\n", "t.toml:5: unknown key \"run\"", "\"runs\""},
        Mistake{"unknown_factor", "name = \"t\"\ncommand = \"./x\"\n[factors]\npower_limits = [100]\n", "t.toml:4: the factor \"power_limits\" has no effect", "did you mean \"power_limit\"?"},
        Mistake{"factor_of_no_parameter", "name = \"t\"\ncommand = \"./x {batch}\"\n[factors]\nbatsh = [1]\n", "batsh", "did you mean \"batch\"?"},
        Mistake{"empty_levels", "name = \"t\"\ncommand = \"./x {b}\"\n[factors]\nb = []\n", "t.toml:4: the factor \"b\" needs its levels", "write b = [..., ...]"},
        Mistake{"level_twice", "name = \"t\"\ncommand = \"./x {b}\"\n[factors]\nb = [1, 1]\n", "t.toml:4: b has the level \"1\" twice", "repetitions"},
        Mistake{"no_factors", "name = \"t\"\ncommand = \"./x\"\n", "no factors", "[factors]"},
        Mistake{"no_command", "name = \"t\"\n[factors]\nbatch = [1]\n", "neither a command nor a workload", "command ="},
        Mistake{"no_name", "command = \"./x {b}\"\n[factors]\nb = [1]\n", "no name", "name = "},
        Mistake{"bad_power", "name = \"t\"\ncommand = \"./x\"\n[factors]\npower_limit = [\"200MHz\"]\n", "t.toml:4: \"200MHz\" is no level of power_limit", "200W"},
        Mistake{"bad_clock", "name = \"t\"\ncommand = \"./x\"\n[factors]\ngraphics_clock = [\"fast\"]\n", "no level of graphics_clock", "\"53%\""},
        Mistake{"bad_gpus", "name = \"t\"\ncommand = \"./x\"\n[factors]\ngpus = [\"0,x\"]\n", "no level of gpus", "\"0,2\""},
        Mistake{"bad_ranks", "name = \"t\"\ncommand = \"./x\"\n[factors]\nranks = [0]\n", "no level of ranks", "whole number"},
        Mistake{"placeholder", "name = \"t\"\ncommand = \"./x {bach}\"\n[parameters]\nbatch = 1\n[factors]\nranks = [1]\n", "t.toml:2: {bach}", "did you mean {batch}?"},
        Mistake{"open_quote", "name = \"t\"\ncommand = \"./x 'a\"\n[factors]\nranks = [1]\n", "t.toml:2: a quote ' never closes", "close it"},
        Mistake{"bad_design", "+[design]\nkind = \"fractional\"\n", "t.toml:6: \"fractional\" is no kind", "did you mean \"fraction\"?"},
        Mistake{"no_base", "+[design]\nkind = \"one-at-a-time\"\n", "t.toml:5: one factor at a time needs a base point", "base ="},
        Mistake{"base_level", "+[design]\nkind = \"one-at-a-time\"\nbase = { batch = 64 }\n", "t.toml:7: batch has no level \"64\"", "16, 32"},
        Mistake{"exclude_factor", "+[design]\nexclude = [{ batsh = 16 }]\n", "t.toml:6: there is no factor \"batsh\"", "did you mean \"batch\"?"},
        Mistake{"no_cells", "+[design]\nkind = \"cells\"\n", "lists no cells", "cells ="},
        Mistake{"bad_executor", "+[where]\nexecutor = \"slurm\"\n", "t.toml:6: \"slurm\" is no executor", "srun"},
        Mistake{"constraint_here", "+[where]\nconstraint = \"gpu\"\n", "only jobs have a constraint", "sbatch"},
        Mistake{"time_without_unit", "+[runs]\ntime_out = 90\n", "t.toml:6: \"time_out\" is a time with its unit", "\"90s\""},
        Mistake{"energy_without_unit", "+[runs]\nenergy_budget = 90\n", "t.toml:6: \"energy_budget\"", "\"5MJ\""},
        Mistake{"until", "+[runs]\nuntil = { metric = \"energy_j\" }\n", "t.toml:6: \"until\" needs", "interval"},
        Mistake{"negative_repetitions", "+[runs]\nrepetitions = 0\n", "t.toml:6: \"repetitions\" is a whole number from 1", "repetitions = 3"},
        Mistake{"level_table", "+[levels.batch.64]\nx = 1\n", "batch has no level \"64\"", "16, 32"}),
    name_of_mistake);

TEST(StudyFile, ReadsItsCommandWithTheLevelsOfACell) {
  const auto file = good(
      "name = \"t\"\ncommand = \"./train --batch {batch} {options} '{a b}' {data}/x\"\n"
      "[parameters]\noptions = \"--lr 0.1 --name 'a b'\"\ndata = \"/d/{batch}\"\n"
      "[factors]\nbatch = [16, 32]\nomp = { levels = [1, 2], environment = \"OMP_NUM_THREADS\" }\n");
  const auto cell = command_of(file, {1, 0});
  ASSERT_TRUE(cell);
  EXPECT_THAT(cell->words, ElementsAre("./train", "--batch", "32", "--lr", "0.1", "--name", "a b", "{a b}", "/d/32/x"));
  EXPECT_EQ(cell->environment.at("OMP_NUM_THREADS"), "1");
}

TEST(StudyFile, ParametersOfALevelHoldInItsCells) {
  const auto file = good(
      "name = \"t\"\ncommand = \"./x {size}\"\n[factors]\nworkload = [\"a\", \"b\"]\n"
      "[levels.workload]\na = { size = \"--big\" }\nb = { size = \"\" }\n");
  EXPECT_THAT(command_of(file, {0})->words, ElementsAre("./x", "--big"));
  EXPECT_THAT(command_of(file, {1})->words, ElementsAre("./x"));
}

TEST(StudyFile, AParameterThatContainsItselfIsAnError) {
  const auto file = good("name = \"t\"\ncommand = \"./x {a}\"\n[parameters]\na = \"{a}\"\n[factors]\nranks = [1]\n");
  const auto cell = command_of(file, {0});
  ASSERT_FALSE(cell);
  EXPECT_THAT(cell.error().message, HasSubstr("contains itself"));
}

TEST(StudyFile, TheCommandLineReplacesParametersAndLevels) {
  StudyOverrides overrides;
  overrides.parameters["data"] = "/other";
  overrides.levels["batch"] = {"64"};
  const auto file = good(std::string(kHead) + "[parameters]\ndata = \"/d\"\n", overrides);
  EXPECT_THAT(file.factors.front().levels, ElementsAre("64"));
  EXPECT_EQ(file.parameters.at("data"), "/other");
  overrides.parameters = {{"dat", "x"}};
  const auto wrong = parse_study_file(std::string(kHead) + "[parameters]\ndata = \"/d\"\n", "t.toml", overrides);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().hint, HasSubstr("did you mean --set data="));
}

TEST(StudyFile, BuiltInStudiesAreGood) {
  for (const auto& study : kBuiltInStudies) {
    const auto file = parse_study_file(study.text, std::string(study.name));
    ASSERT_TRUE(file) << file.error().message << "\n" << file.error().hint;
    EXPECT_EQ(file->name, study.name);
    EXPECT_TRUE(make_plan(*file, {}, 1, "t")) << study.name;
  }
}

}  // namespace
}  // namespace ergometer
