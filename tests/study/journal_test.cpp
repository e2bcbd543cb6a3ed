// The journal of a study: what is written is read again, cut lines are left out, damaged ones are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/file.hpp"
#include "study/progress.hpp"
#include "study/study_folder.hpp"
#include "study/study_journal.hpp"
#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using testing::HasSubstr;

constexpr const char* kStudy = "name = \"t\"\ncommand = \"./x {a}\"\n[factors]\na = [1, 2]\n[runs]\nrepetitions = 2\n";

class StudyJournalTest : public testing::Test {
 protected:
  StudyJournalTest() : file_(*parse_study_file(kStudy, "t.toml")), plan_(*make_plan(file_, {}, 3, "t.toml")) {}

  RunEnd end_with(double energy) const {
    RunEnd end;
    end.metrics["energy_j"] = {energy, 0.5};
    end.energy_j = energy;
    end.seconds = 2;
    end.reasons = {"odd \"thing\""};
    return end;
  }
  StudyState state() const {
    auto read = read_study_state(dir_.path(), plan_);
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return read ? *read : StudyState{};
  }

  test::TempDir dir_;
  StudyFile file_;
  Plan plan_;
};

TEST_F(StudyJournalTest, GivesBackWhatWasWritten) {
  {
    auto journal = StudyJournal::open(dir_.path(), "journal.jsonl");
    ASSERT_TRUE(journal);
    ASSERT_TRUE(journal->started(1, 0, "runs/0001", {12, 34, "boot"}));
    ASSERT_TRUE(journal->ended(1, end_with(7)));
    ASSERT_TRUE(journal->started(2, 1, "runs/0002", {12, 34, "boot"}));
    ASSERT_TRUE(journal->skipped({3}));
    ASSERT_TRUE(journal->submitted({0}, "77"));
  }
  const auto now = state();
  EXPECT_EQ(now.started, 2);
  ASSERT_TRUE(now.runs[1].end);
  EXPECT_EQ(now.runs[1].end->metrics.at("energy_j").value, 7);
  EXPECT_EQ(now.runs[1].end->metrics.at("energy_j").uncertainty, 0.5);
  EXPECT_EQ(now.runs[1].end->reasons.front(), "odd \"thing\"");
  EXPECT_FALSE(now.runs[1].process);
  ASSERT_TRUE(now.runs[2].process);
  EXPECT_EQ(now.runs[2].process->pid, 12);
  EXPECT_TRUE(now.runs[3].skipped);
  EXPECT_EQ(now.runs[0].job, "77");
  const auto progress = progress_of(file_, plan_, now);
  EXPECT_EQ(progress.planned, 3u);
  EXPECT_EQ(progress.left, 2u);
  EXPECT_EQ(progress.energy_j, 7);
  EXPECT_DOUBLE_EQ(*progress.left_s, 4);
  const auto table = table_of(file_, plan_, now);
  ASSERT_EQ(table.runs.size(), 3u);
  EXPECT_EQ(table.runs[1].verdict, Verdict::valid);
  EXPECT_EQ(table.runs[0].verdict, Verdict::missing);
  EXPECT_EQ(table.factors.front().values[1], 2);
}

TEST_F(StudyJournalTest, ACutLineIsOverwrittenByTheNext) {
  {
    auto journal = StudyJournal::open(dir_.path(), "journal.jsonl");
    ASSERT_TRUE(journal->started(0, 0, "runs/0000", {1, 2, ""}));
  }
  std::ofstream(dir_.path() / "journal.jsonl", std::ios::app) << "{\"kind\":\"ended\",\"run\":0,\"exi";
  EXPECT_FALSE(state().runs[0].end);
  auto journal = StudyJournal::open(dir_.path(), "journal.jsonl");
  ASSERT_TRUE(journal->ended(0, end_with(1)));
  EXPECT_TRUE(state().runs[0].end);
}

TEST_F(StudyJournalTest, ADamagedLineIsNamed) {
  for (const char* line : {"nonsense\n", "{}\n", "{\"kind\":\"started\",\"at\":1,\"run\":99}\n"}) {
    std::ofstream(dir_.path() / "journal.jsonl") << line;
    const auto read = read_study_state(dir_.path(), plan_);
    ASSERT_FALSE(read) << line;
    EXPECT_THAT(read.error().message, HasSubstr("journal.jsonl:1: "));
  }
}

TEST_F(StudyJournalTest, JournalsOfJobsAddUp) {
  auto first = StudyJournal::open(dir_.path(), "journal.jsonl");
  auto job = StudyJournal::open(dir_.path(), "journal-5.jsonl");
  ASSERT_TRUE(first->submitted({0, 1}, "5"));
  ASSERT_TRUE(job->started(1, 0, "runs/0001", {1, 2, ""}));
  ASSERT_TRUE(job->ended(1, end_with(3)));
  const auto now = state();
  EXPECT_TRUE(now.runs[1].end);
  EXPECT_FALSE(now.runs[0].end);
  EXPECT_EQ(now.runs[0].job, "5");
}

// A limit on the file's size stands for a full disk: a part of the line is written before the error comes.
TEST_F(StudyJournalTest, AFullDiskIsAnErrorAndLeavesTheJournalWhole) {
  auto journal = StudyJournal::open(dir_.path(), "journal.jsonl");
  ASSERT_TRUE(journal->started(0, 0, "runs/0000", {1, 2, ""}));
  const auto size = std::filesystem::file_size(dir_.path() / "journal.jsonl");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{static_cast<rlim_t>(size) + 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto noted = journal->ended(0, end_with(1));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(noted);
  EXPECT_THAT(noted.error().message, HasSubstr("journal.jsonl"));
  EXPECT_EQ(std::filesystem::file_size(dir_.path() / "journal.jsonl"), size);
  ASSERT_TRUE(journal->ended(0, end_with(1)));
  EXPECT_TRUE(state().runs[0].end);
}

TEST_F(StudyJournalTest, AProcessIsKnownByMoreThanItsNumber) {
  const auto self = process_id(::getpid());
  ASSERT_TRUE(self);
  EXPECT_TRUE(still_runs(*self));
  auto other = *self;
  ++other.started_ticks;
  EXPECT_FALSE(still_runs(other));
}

TEST_F(StudyJournalTest, AFolderIsOpenedAsItWasMadeAndAChangeIsNamed) {
  const StudySource source{kStudy, "t.toml", {}};
  const auto made = create_study(dir_.path() / "s", source, plan_, file_);
  ASSERT_TRUE(made);
  const auto opened = open_study(dir_.path() / "s");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->plan.runs.size(), 4u);
  EXPECT_TRUE(check_unchanged(*opened, source));
  auto changed = source;
  changed.text.replace(changed.text.find("[1, 2]"), 6, "[1, 3]");
  const auto refused = check_unchanged(*opened, changed);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("line 4 was `a = [1, 2]` and is `a = [1, 3]`"));
  EXPECT_THAT(refused.error().hint, HasSubstr("-o FOLDER"));
  EXPECT_FALSE(create_study(dir_.path() / "s", source, plan_, file_));
  EXPECT_FALSE(open_study(dir_.path()));
}

}  // namespace
}  // namespace ergometer
