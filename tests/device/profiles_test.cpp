#include "device/profiles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

Channel power(std::string column = "power_instant_w", Method method = Method::integral) {
  Channel c;
  c.column = std::move(column);
  c.quantity = Quantity::power;
  c.domain = "gpu/0";
  c.device = "GPU-1";
  c.scope = Scope::gpu;
  c.method = method;
  return c;
}

Node node_with(const std::string& gpu) {
  Node node;
  node.gpus.resize(1);
  node.gpus[0].uuid = "GPU-1";
  node.gpus[0].name = gpu;
  return node;
}

Channel completed(const std::vector<Profile>& profiles, const Node& node, Channel channel,
                  const std::string& interface = "nvml") {
  std::vector<Channel> channels{std::move(channel)};
  apply_profiles(profiles, node, interface, channels);
  return channels[0];
}

TEST(Profiles, BuiltInOnesAreWholeAndSourced) {
  std::vector<std::string> names;
  for (const auto& profile : built_in_profiles()) {
    names.push_back(profile.name);
    const auto again = parse_profile(to_toml(profile), profile.name);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(to_toml(*again), to_toml(profile));
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("a100", "dcmi", "epyc", "grace", "h100", "h200", "nvidia",
                                                   "pm_counters", "rtx3090", "rtx4090", "v100", "xcc", "xeon"));
  EXPECT_EQ(names.back(), "xcc") << "closest first, then by file name";
}

TEST(Profiles, F61_TheShareOfTimeThatIsLookedAt) {
  const auto c = completed(built_in_profiles(), node_with("NVIDIA A100-SXM4-80GB"), power());
  EXPECT_EQ(c.period, std::chrono::milliseconds(100));
  EXPECT_EQ(c.window, std::chrono::milliseconds(25));
  EXPECT_EQ(c.sampled_share, 0.25);
  EXPECT_EQ(c.gain_tolerance, 0.05);
  EXPECT_EQ(c.profile, "a100, nvidia");
}

TEST(Profiles, WholeWordsOnly) {
  const auto c = completed(built_in_profiles(), node_with("NVIDIA RTX A1000"), power());
  EXPECT_EQ(c.window, std::nullopt);
  EXPECT_EQ(c.profile, "nvidia");
}

TEST(Profiles, OnlyUnsetFieldsOfEnergyChannelsAreSet) {
  Channel own = power();
  own.window = std::chrono::milliseconds(7);
  EXPECT_EQ(completed(built_in_profiles(), node_with("NVIDIA H200"), own).window, std::chrono::milliseconds(7));
  Channel clock = power("sm_hz");
  clock.method.reset();
  EXPECT_EQ(completed(built_in_profiles(), node_with("NVIDIA H200"), clock).profile, "");
  EXPECT_EQ(completed(built_in_profiles(), node_with("NVIDIA H200"), power(), "hwmon").profile, "");
  Channel model = power();
  model.measured = false;
  EXPECT_EQ(completed(built_in_profiles(), node_with("NVIDIA H200"), model).profile, "");
}

TEST(Profiles, TwiceIsOnce) {
  const auto once = completed(built_in_profiles(), node_with("NVIDIA H200"), power("power_w", Method::samples));
  EXPECT_EQ(completed(built_in_profiles(), node_with("NVIDIA H200"), once).profile, once.profile);
}

TEST(Profiles, ProcessorByItsName) {
  Channel dram = power("dram_0_energy_j", Method::counter);
  dram.quantity = Quantity::energy;
  dram.scope = Scope::dram;
  Node node;
  node.cpu.model = "Intel(R) Xeon(R) Platinum 8480+";
  EXPECT_EQ(completed(built_in_profiles(), node, dram, "rapl-perf").gain_tolerance, 0.2);
  node.cpu.model = "AMD EPYC 9654 96-Core Processor";
  EXPECT_EQ(completed(built_in_profiles(), node, dram, "rapl-powercap").gain_tolerance, 0.1);
}

TEST(Profiles, AUsersFolderComesFirstFieldByField) {
  const test::TempDir dir;
  dir.write("ergometer/profiles/mine.toml", R"(name = "mine"
devices = ["GPU-1"]
[[channel]]
columns = ["power_*"]
gain = { value = 1.02, source = "own meter" }
gain_tolerance = { value = 0.01, source = "own meter" }
)");
  dir.write("ergometer/profiles/bad.toml", "name = \"bad\"\ngpus = [\"A100\"]\n[[channel]]\nwindow_ms = 25\n");
  const auto folder = user_profile_dir({{"XDG_CONFIG_HOME", dir.path().string()}});
  std::vector<Warning> warnings;
  auto profiles = load_profiles(folder, warnings);
  ASSERT_EQ(profiles.size(), 1u);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0].message, testing::HasSubstr("bad.toml: channel 1: window_ms needs a value and its source"));
  profiles.insert(profiles.end(), built_in_profiles().begin(), built_in_profiles().end());
  const auto c = completed(profiles, node_with("NVIDIA A100-SXM4-80GB"), power());
  EXPECT_EQ(c.gain, 1.02);
  EXPECT_EQ(c.gain_tolerance, 0.01);
  EXPECT_EQ(c.window, std::chrono::milliseconds(25));
  EXPECT_EQ(c.profile, "mine, a100");
  Node other = node_with("NVIDIA A100-SXM4-80GB");
  Channel second = power();
  second.device = other.gpus[0].uuid = "GPU-2";
  EXPECT_EQ(completed(profiles, other, second).gain, std::nullopt);
}

TEST(Profiles, FolderOfTheUser) {
  EXPECT_EQ(user_profile_dir({{"HOME", "/home/a"}}), "/home/a/.config/ergometer/profiles");
  EXPECT_EQ(user_profile_dir({{"HOME", "/home/a"}, {"XDG_CONFIG_HOME", "/c"}}), "/c/ergometer/profiles");
  EXPECT_EQ(user_profile_dir({}), "");
}

TEST(Profiles, DamagedTextsAreNamed) {
  const auto message = [](const char* text) {
    const auto parsed = parse_profile(text, "p.toml");
    return parsed ? std::string("accepted") : parsed.error().message;
  };
  EXPECT_THAT(message("name = "), testing::StartsWith("p.toml:1:"));
  EXPECT_EQ(message("gpus = [\"A\"]\n[[channel]]"), "p.toml: a profile needs a name");
  EXPECT_EQ(message("name = \"x\"\n[[channel]]"), "p.toml: nothing says which devices the profile is for");
  EXPECT_EQ(message("name = \"x\"\ngpu = [\"A\"]\n[[channel]]"), "p.toml: unknown key \"gpu\"");
  EXPECT_EQ(message("name = \"x\"\ngpus = [\"A\"]"), "p.toml: there is no [[channel]]");
  EXPECT_EQ(message("name = \"x\"\ngpus = [\"A\"]\n[[channel]]\nsampled_share = { value = 2, source = \"s\" }"),
            "p.toml: channel 1: sampled_share is 2, outside of 1e-06 to 1");
  EXPECT_EQ(message("name = \"x\"\ngpus = [\"A\"]\n[[channel]]\nmethods = [\"guess\"]"),
            "p.toml: channel 1: methods: unknown word \"guess\"");
}

}  // namespace
}  // namespace ergometer
