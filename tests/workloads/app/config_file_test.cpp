#include "app/config_file.hpp"

#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

namespace ergometer::workload {
namespace {

class ConfigFile : public testing::Test {
 protected:
  ConfigFile() {
    for (const char* name : {"train", "infer"}) {
      CLI::App* command = app_.add_subcommand(name);
      command->add_option("name");
      command->add_option("--epochs");
      command->add_option("--data");
      command->add_flag("--strict");
      command->add_option("--config");
    }
  }
  Result<std::vector<std::string>> with(const std::string& text) {
    folder_.write("run.toml", text);
    return with_config_file(app_, {"train", "vgg16", "--config", path(), "--epochs", "1"});
  }
  void fails(const std::string& text, const std::string& message, const std::string& hint) {
    const auto arguments = with(text);
    ASSERT_FALSE(arguments) << text;
    EXPECT_EQ(arguments.error().fault, Fault::usage);
    EXPECT_EQ(arguments.error().message, path() + message);
    EXPECT_EQ(arguments.error().hint, hint);
  }
  std::string path() const { return (folder_ / "run.toml").string(); }

  CLI::App app_;
  test::TempDir folder_;
};

TEST_F(ConfigFile, GoesBeforeTheCommandLine) {
  const auto arguments = with("# comment\ndata = 'a b'\nstrict = true\n[infer]\nepochs = 7\n[train]\nepochs = 3\n");
  ASSERT_TRUE(arguments) << arguments.error().message;
  EXPECT_EQ(*arguments, (std::vector<std::string>{"train", "--data=a b", "--strict=true", "--epochs=3", "vgg16",
                                                  "--config", path(), "--epochs", "1"}));
}

TEST_F(ConfigFile, UnknownKeysNameTheNearest) {
  fails("epoch = 3\n", ": 'epoch' is no option of train", "did you mean 'epochs'?");
  fails("help = true\n", ": 'help' is no option of train", "did you mean 'data'?");
  fails("[trian]\nepochs = 3\n", ": unknown section [trian]", "did you mean [train]?");
  fails("config = 'other.toml'\n", ": 'config' is no option of train", "did you mean 'epochs'?");
}

TEST_F(ConfigFile, WithoutTheOptionNothingChanges) {
  const std::vector<std::string> plain = {"train", "vgg16", "--epochs", "1"};
  EXPECT_EQ(*with_config_file(app_, plain), plain);
  EXPECT_TRUE(with_config_file(app_, {})->empty());
  const auto missing = with_config_file(app_, {"train", "vgg16", "--config", path() + ".none"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().fault, Fault::data);
}

}  // namespace
}  // namespace ergometer::workload
