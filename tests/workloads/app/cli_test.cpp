#include "app/cli.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "app/registry.hpp"
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
  for (const char* text : {"vgg16", "138357544", "resnet50", "25557032", "inception_v3", "27161264", "bert_base",
                           "109514298", "distilbert", "66985530", "schnet", "455809", "dimenet", "pna", "xray_vgg19",
                           "load_lstm", "9841", "168 hours"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << '\n' << outcome.out;
  }
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1 + 10);
}

TEST(WorkloadCli, HelpIsNoError) {
  EXPECT_EQ(run({"--help"}).code, 0);
  const Outcome outcome = run({"train", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("--validate-samples"), std::string::npos);
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
      {{"train", "load_lstm", "--data", "x", "--workers", "-1"}, "'-1' is not a whole number"},
      {{"train", "load_lstm", "--data", "x", "--ranks", "0"}, "--ranks"},
      {{"train", "load_lstm", "--data", "x", "--precision", "fp8"}, "fp8"},
      {{"train", "load_lstm", "--data", "x", "--compile", "jit"}, "jit"},
      {{"train", "load_lstm", "--data", "x", "--compile", "graph"}, "--compile graph needs --device cuda"},
      {{"train", "load_lstm", "--data", "x", "--validate-windows", "9"}, "did you mean '--validate-samples'?"},
      {{"infer", "load_lstm"}, "--data"},
      {{"infer", "load_lstm", "--data", "x", "--checkpont", "y"}, "did you mean '--checkpoint'?"},
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
  fails({"train", "load_lstm", "--data", "synthetic", "--resume", data + "/damaged.pt"},
        "not a checkpoint of load_lstm");
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
  ASSERT_EQ(run({"data", "make", "load_lstm", data, "--count", "1"}).code, 0);
  for (const char* run_folder : {"train_run", "infer_run"})
    folder.write(std::string(run_folder) + "/markers/.keep", "");
  const std::string net = data + "/net.pt";
  ASSERT_EQ(std::system(("ERGOMETER_RUN=" + data + "/train_run " + program + " train load_lstm --data " + data +
                         " --epochs 2 --steps 3 --validate-samples 70 --warm-up 2 --checkpoint " + net + " > " + data +
                         "/out 2> " + data + "/notes")
                            .c_str()),
            0);
  const Marks train = read_marks(folder / "train_run/markers");
  EXPECT_EQ(train.regions,
            (std::map<std::string, int>{
                {"data", 1}, {"train", 1}, {"warm-up", 1}, {"epoch", 2}, {"step", 6}, {"validation", 2}}));
  EXPECT_EQ(train.epochs, (std::set<std::int64_t>{1, 2}));
  EXPECT_EQ(train.keys.at("step"), (std::set<std::string>{"samples", "loss"}));
  EXPECT_EQ(train.keys.at("epoch"), (std::set<std::string>{"samples", "loss", "data_wait_s", "validation_loss",
                                                           "mean_predictor_loss", "last_week_loss"}));
  EXPECT_EQ(train.keys.at("validation"), (std::set<std::string>{"loss", "validated"}));
  const std::string out = folder.read("out");
  EXPECT_NE(out.find("\nepoch 1/2: train loss 0."), std::string::npos) << out;
  EXPECT_NE(out.find("\nepoch 2/2: "), std::string::npos) << out;
  EXPECT_EQ(folder.read("notes"), "");  // no progress where there is no terminal

  ASSERT_EQ(std::system(("ERGOMETER_RUN=" + data + "/infer_run " + program + " infer load_lstm --data " + data +
                         " --batch 1000 --checkpoint " + net + " > " + data + "/out")
                            .c_str()),
            0);
  const Marks infer = read_marks(folder / "infer_run/markers");
  EXPECT_EQ(infer.regions, (std::map<std::string, int>{{"data", 1}, {"infer", 1}, {"batch", 9}, {"validation", 1}}));
  EXPECT_EQ(infer.keys.at("batch"), (std::set<std::string>{"samples"}));
  EXPECT_EQ(infer.keys.at("infer"), (std::set<std::string>{"samples"}));
  EXPECT_NE(folder.read("out").find("p50 "), std::string::npos);
}

TEST(WorkloadCli, EveryWorkloadHasItsParts) {
  std::set<std::string> names;
  for (const Workload& workload : workloads()) {
    EXPECT_TRUE(names.insert(std::string(workload.name)).second) << workload.name;
    EXPECT_TRUE(workload.make_task && workload.open_data && workload.make_data) << workload.name;
    EXPECT_GT(workload.parameters, 0) << workload.name;
    EXPECT_GE(workload.batch, 1) << workload.name;
    EXPECT_FALSE(workload.unit.empty() || workload.input.empty() || workload.source.empty()) << workload.name;
  }
  EXPECT_EQ(names.size(), 10U);
}

// Each network's training and what its loss does are tested beside it (tests/workloads/{vision,language,...}).
class Infer : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Infer, TellsLatenciesAndALoss) {
  std::vector<std::string> arguments = {"infer", "--data", "synthetic", "--steps", "2", "--warm-up", "1"};
  arguments.insert(arguments.begin() + 1, GetParam().begin(), GetParam().end());
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.notes;
  for (const char* text : {" in ", "/s", "p50 ", "p90 ", "p99 ", "loss "})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << '\n' << outcome.out;
  EXPECT_EQ(outcome.out.find("nan"), std::string::npos) << outcome.out;
}

INSTANTIATE_TEST_SUITE_P(
    AllTen, Infer,
    ::testing::Values(std::vector<std::string>{"vgg16", "--image-size", "32", "--batch", "2"},
                      std::vector<std::string>{"resnet50", "--image-size", "64", "--batch", "2"},
                      std::vector<std::string>{"inception_v3", "--image-size", "96", "--batch", "2"},
                      std::vector<std::string>{"xray_vgg19", "--image-size", "122", "--batch", "1"},
                      std::vector<std::string>{"bert_base", "--sequence", "16", "--batch", "2"},
                      std::vector<std::string>{"distilbert", "--sequence", "16", "--batch", "2"},
                      std::vector<std::string>{"schnet", "--batch", "4"},
                      std::vector<std::string>{"dimenet", "--batch", "2"},
                      std::vector<std::string>{"pna", "--batch", "4"},
                      std::vector<std::string>{"load_lstm", "--batch", "4"}),
    [](const auto& each) { return each.param.front(); });

TEST(WorkloadCli, TheConfigFileGivesOptionsAndTheCommandLineWins) {
  const test::TempDir folder;
  const std::string config = (folder / "run.toml").string();
  folder.write("run.toml", "data = \"synthetic\"\nsteps = 2\n[train]\nepochs = 3\nno-validation = true\n");
  const Outcome file = run({"train", "load_lstm", "--config", config, "--workers", "0"});
  EXPECT_EQ(file.code, 0) << file.notes;
  EXPECT_NE(file.out.find(" 2 steps of 64 an epoch"), std::string::npos) << file.out;
  EXPECT_NE(file.out.find("epoch 3/3: "), std::string::npos) << file.out;
  EXPECT_EQ(file.out.find("validation"), std::string::npos) << file.out;
  const Outcome both = run({"train", "load_lstm", "--epochs", "1", "--config=" + config, "--steps", "1"});
  EXPECT_EQ(both.code, 0) << both.notes;
  EXPECT_NE(both.out.find(" 1 steps of 64 an epoch"), std::string::npos) << both.out;
  EXPECT_NE(both.out.find("epoch 1/1: "), std::string::npos) << both.out;
}

TEST(WorkloadCli, AResumedTrainingGoesOnInTheNextEpoch) {
  const test::TempDir folder;
  const std::string net = (folder / "net.pt").string();
  const std::vector<std::string> common = {"train",   "load_lstm", "--data",         "synthetic",
                                           "--steps", "1",         "--no-validation"};
  const auto train = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return run(more);
  };
  ASSERT_EQ(train({"--epochs", "1", "--checkpoint", net}).code, 0);
  const Outcome resumed = train({"--epochs", "2", "--resume", net});
  EXPECT_EQ(resumed.code, 0) << resumed.notes;
  EXPECT_EQ(resumed.out.find("epoch 1/2"), std::string::npos) << resumed.out;
  EXPECT_NE(resumed.out.find("epoch 2/2"), std::string::npos) << resumed.out;
  const Outcome other = train({"--epochs", "2", "--resume", net, "--batch", "32"});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.notes.find("was trained with batch 64, not 32"), std::string::npos) << other.notes;
}

}  // namespace
}  // namespace ergometer::workload
