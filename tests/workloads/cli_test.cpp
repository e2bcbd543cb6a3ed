#include "app/cli.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "region/record.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::workload {
namespace {

struct Outcome {
  int code;
  std::string out;
  std::string notes;
};

Outcome run(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream notes;
  const int code = run_cli(arguments, {out, notes});
  return {code, out.str(), notes.str()};
}

TEST(WorkloadCli, ListNamesTheWorkloads) {
  const Outcome outcome = run({"list"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("load_lstm"), std::string::npos);
  EXPECT_NE(outcome.out.find("9841"), std::string::npos);
}

TEST(WorkloadCli, HelpIsNoError) {
  EXPECT_EQ(run({"--help"}).code, 0);
  const Outcome outcome = run({"train", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("--validate-windows"), std::string::npos);
}

TEST(WorkloadCli, UsageErrorsAreTwoAndNameTheNearest) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "subcommand"},
      {{"trian", "load_lstm"}, "did you mean 'train'?"},
      {{"train", "load_lst", "--data", "x"}, "did you mean 'load_lstm'?"},
      {{"train", "load_lstm"}, "--data"},
      {{"train", "load_lstm", "--data", "x", "--epoch", "3"}, "did you mean '--epochs'?"},
      {{"train", "load_lstm", "--data", "x", "--batch", "0"}, "'0' is not a whole number from 1 on"},
      {{"train", "load_lstm", "--data", "x", "--batch", "64x"}, "'64x' is not a whole number"},
      {{"train", "load_lstm", "--data", "x", "--lr", "-1"}, "'-1' is not a number above 0"},
      {{"train", "load_lstm", "--data", "x", "--device", "gpu"}, "gpu"},
      {{"train", "load_lstm", "--data", "x", "--seed", "-1"}, "'-1' is not a whole number"},
      {{"infer", "load_lstm", "--data", "x"}, "--checkpoint"},
      {{"data", "mak", "load_lstm", "x"}, "did you mean 'make'?"},
      {{"data", "make", "load_lstm"}, "folder"},
  };
  for (const auto& [arguments, text] : cases) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << text;
    EXPECT_NE(outcome.notes.find(text), std::string::npos) << outcome.notes;
    EXPECT_EQ(outcome.out, "") << text;
  }
}

TEST(WorkloadCli, DataErrorsAreOne) {
  const test::TempDir folder;
  folder.write("train.csv", "Time [s],Load [MWh],City\n2019-01-01 00:00:00,many,A\n");
  folder.write("damaged.pt", "not an archive");
  const std::string data = folder.path().string();
  const auto fails = [&](const std::vector<std::string>& arguments, const std::string& text) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 1) << text;
    EXPECT_NE(outcome.notes.find(text), std::string::npos) << outcome.notes;
  };
  fails({"train", "load_lstm", "--data", data + "/none"}, "none/train.csv: no such file");
  fails({"train", "load_lstm", "--data", data}, "train.csv:2: the load 'many' is not a number");
  fails({"train", "load_lstm", "--data", data, "--checkpoint", data + "/none/net.pt"}, "net.pt: No such file");
  fails({"infer", "load_lstm", "--data", data, "--checkpoint", data + "/none.pt"}, "none.pt: No such file");
  fails({"infer", "load_lstm", "--data", data, "--checkpoint", data + "/damaged.pt"}, "not a checkpoint of load_lstm");
  fails({"data", "make", "load_lstm", data + "/train.csv/sub"}, "sub:");
}

// What the marker file of a measured process holds: how often each region, and the keys of its attributes.
struct Marks {
  std::map<std::string, int> regions;
  std::map<std::string, std::set<std::string>> keys;
  std::set<std::int64_t> epochs;
};

Marks read_marks(const std::filesystem::path& folder) {
  Marks marks;
  std::map<std::uint64_t, std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    file.ignore(sizeof(marker::Header));
    marker::Record record;
    while (file.read(reinterpret_cast<char*>(&record), sizeof record)) {
      const std::string text(record.text, std::min<std::size_t>(record.length, sizeof record.text));
      if (record.kind == marker::kBegin) {
        names[record.id] = text;
        ++marks.regions[text];
        if (text == "epoch") marks.epochs.insert(record.index);
      } else if (record.kind == marker::kNumber) {
        marks.keys[names[record.id]].insert(text);
      }
    }
  }
  return marks;
}

TEST(WorkloadCli, TrainAndInferMarkTheirRegions) {
  const test::TempDir folder;
  const std::string data = folder.path().string();
  const std::string program = ERGOMETER_WORKLOAD;
  ASSERT_EQ(run({"data", "make", "load_lstm", data, "--cities", "1"}).code, 0);
  for (const char* run_folder : {"train_run", "infer_run"})
    folder.write(std::string(run_folder) + "/markers/.keep", "");
  const std::string net = data + "/net.pt";
  ASSERT_EQ(std::system(("ERGOMETER_RUN=" + data + "/train_run " + program + " train load_lstm --data " + data +
                         " --epochs 2 --steps 3 --validate-windows 70 --checkpoint " + net + " > " + data + "/out")
                            .c_str()),
            0);
  const Marks train = read_marks(folder / "train_run/markers");
  EXPECT_EQ(train.regions,
            (std::map<std::string, int>{{"data", 1}, {"train", 1}, {"epoch", 2}, {"step", 6}, {"validation", 2}}));
  EXPECT_EQ(train.epochs, (std::set<std::int64_t>{1, 2}));
  EXPECT_EQ(train.keys.at("step"), (std::set<std::string>{"samples", "loss"}));
  EXPECT_EQ(train.keys.at("epoch"),
            (std::set<std::string>{"samples", "loss", "validation_loss", "mean_predictor_loss", "last_week_loss"}));
  EXPECT_EQ(train.keys.at("validation"), (std::set<std::string>{"loss", "windows"}));
  const std::string out = folder.read("out");
  EXPECT_NE(out.find("\nepoch 1/2: train loss 0."), std::string::npos) << out;
  EXPECT_NE(out.find("\nepoch 2/2: "), std::string::npos) << out;

  ASSERT_EQ(std::system(("ERGOMETER_RUN=" + data + "/infer_run " + program + " infer load_lstm --data " + data +
                         " --batch 1000 --checkpoint " + net + " > " + data + "/out")
                            .c_str()),
            0);
  const Marks infer = read_marks(folder / "infer_run/markers");
  EXPECT_EQ(infer.regions, (std::map<std::string, int>{{"data", 1}, {"infer", 1}, {"batch", 9}}));
  EXPECT_EQ(infer.keys.at("batch"), (std::set<std::string>{"samples"}));
  EXPECT_NE(folder.read("out").find("p50 "), std::string::npos);
}

}  // namespace
}  // namespace ergometer::workload
