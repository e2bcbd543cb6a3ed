#include <gtest/gtest.h>

#include <cstdlib>

#include "device/nvml/visibility.hpp"

namespace ergometer::nvml {
namespace {

std::vector<VisibleCandidate> four() {
  return {{0, "GPU-aa000000-1111-2222-3333-444444444444", "A100", "00000000:01:00.0"},
          {1, "GPU-ab000000-1111-2222-3333-444444444444", "A100", "00000000:41:00.0"},
          {2, "GPU-cc000000-1111-2222-3333-444444444444", "A100", "00000000:81:00.0"},
          {3, "GPU-dd000000-1111-2222-3333-444444444444", "A100", "00000000:C1:00.0"}};
}

std::vector<VisibleCandidate> one() { return {four()[0]}; }

std::vector<VisibleCandidate> mixed() {
  return {{0, "GPU-51000000-0000", "Slow", "00000000:01:00.0"}, {1, "GPU-fa000000-0000", "Fast", "00000000:41:00.0"}};
}

std::vector<int> indices(const Visibility& visibility) {
  std::vector<int> list;
  for (const auto& entry : visibility.order) list.push_back(entry.index);
  return list;
}

std::vector<int> visible(const std::vector<VisibleCandidate>& gpus, const char* value) {
  return indices(resolve_visibility({{"CUDA_VISIBLE_DEVICES", value}}, gpus, {}, {}));
}

using Order = std::vector<int>;

TEST(NvmlVisibility, F37_BasicForms) {
  EXPECT_EQ(indices(resolve_visibility({}, four(), {}, {})), (Order{0, 1, 2, 3}));
  EXPECT_EQ(visible(four(), ""), Order{});
  EXPECT_EQ(visible(four(), "-1"), Order{});
  EXPECT_EQ(visible(four(), "2"), Order{2});
  EXPECT_EQ(visible(four(), "2,1"), (Order{2, 1}));
  EXPECT_EQ(visible(four(), "1,0"), (Order{1, 0}));
  EXPECT_EQ(visible(four(), "GPU-dd000000-1111-2222-3333-444444444444"), Order{3});
}

TEST(NvmlVisibility, F36_OneOfFour) { EXPECT_EQ(visible(four(), "2"), Order{2}); }

// As seen with driver 580 on a machine with one H200.
TEST(NvmlVisibility, ListEndsAtTheFirstInvalidEntry) {
  EXPECT_EQ(visible(one(), "0,1"), Order{0});
  EXPECT_EQ(visible(one(), "1,0"), Order{});
  EXPECT_EQ(visible(one(), "0,-1"), Order{0});
  EXPECT_EQ(visible(four(), "3,-1,0"), Order{3});
  EXPECT_EQ(visible(four(), "0,x,1"), Order{0});
  EXPECT_EQ(visible(four(), "0,,1"), Order{0});
  EXPECT_EQ(visible(four(), "99999999999999999999"), Order{});
}

TEST(NvmlVisibility, DuplicateLeavesNone) {
  EXPECT_EQ(visible(one(), "0,0"), Order{});
  EXPECT_EQ(visible(four(), "1,2,1"), Order{});
  EXPECT_EQ(visible(four(), "1,GPU-ab"), Order{});
}

TEST(NvmlVisibility, UniquePrefixOfUuid) {
  EXPECT_EQ(visible(one(), "GPU-"), Order{0});
  EXPECT_EQ(visible(four(), "GPU-"), Order{});
  EXPECT_EQ(visible(four(), "GPU-a"), Order{});
  EXPECT_EQ(visible(four(), "GPU-ab"), Order{1});
  EXPECT_EQ(visible(four(), "GPU-AB"), Order{1});
  EXPECT_EQ(visible(four(), "GPU-ee"), Order{});
}

TEST(NvmlVisibility, BlanksAndTrailingComma) {
  EXPECT_EQ(visible(four(), " 2 , 1 "), (Order{2, 1}));
  EXPECT_EQ(visible(four(), "2,"), Order{2});
}

TEST(NvmlVisibility, WarnsOfWhatIsIgnoredButNotOfNone) {
  const auto resolve = [](const char* value) {
    return resolve_visibility({{"CUDA_VISIBLE_DEVICES", value}}, four(), {}, {}).warnings;
  };
  EXPECT_TRUE(resolve("-1").empty());
  EXPECT_TRUE(resolve("").empty());
  EXPECT_TRUE(resolve("0,2").empty());
  ASSERT_EQ(resolve("0,7").size(), 1U);
  EXPECT_EQ(resolve("0,7")[0].code, "cuda-visible-devices");
  EXPECT_NE(resolve("0,7")[0].message.find("'7'"), std::string::npos);
  EXPECT_EQ(resolve("0,0").size(), 1U);
}

TEST(NvmlVisibility, NoGpus) {
  EXPECT_EQ(indices(resolve_visibility({}, {}, {}, {})), Order{});
  EXPECT_EQ(visible({}, "0"), Order{});
}

TEST(NvmlVisibility, F41_MigIdentifiers) {
  const std::vector<MigInstance> slices = {{"MIG-11111111-2222-3333-4444-555555555555", 1, 3, 0, {}, {}},
                                           {"MIG-99999999-2222-3333-4444-555555555555", 1, 4, 0, {}, {}}};
  const auto resolve = [&](const char* value) {
    return resolve_visibility({{"CUDA_VISIBLE_DEVICES", value}}, four(), slices, {});
  };
  const auto by_uuid = resolve("MIG-11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(indices(by_uuid), Order{1});
  ASSERT_EQ(by_uuid.order.size(), 1U);
  EXPECT_EQ(by_uuid.order[0].slices, std::vector<std::size_t>{0});
  EXPECT_TRUE(by_uuid.order[0].mig_slice);
  ASSERT_EQ(by_uuid.warnings.size(), 1U);
  EXPECT_EQ(by_uuid.warnings[0].code, "mig-shared");

  EXPECT_EQ(indices(resolve("MIG-GPU-ab000000-1111-2222-3333-444444444444/3/0")), Order{1});
  EXPECT_EQ(indices(resolve("MIG-GPU-ab000000-1111-2222-3333-444444444444/5/0")), Order{});
  EXPECT_EQ(indices(resolve("MIG-GPU-ab000000-1111-2222-3333-444444444444/3")), Order{});
  EXPECT_EQ(indices(resolve("MIG-GPU-ab000000-1111-2222-3333-444444444444/x/y")), Order{});
  EXPECT_EQ(indices(resolve("MIG-77777777-2222-3333-4444-555555555555")), Order{});
  // Two slices of one GPU: its energy counts once.
  EXPECT_EQ(indices(resolve("MIG-1111,MIG-9999")), Order{1});
  EXPECT_EQ(indices(resolve("MIG-1111,MIG-1111")), Order{});
}

TEST(NvmlVisibility, F39_CudaOrderDecidesOnMixedCards) {
  const Environment plain = {{"CUDA_VISIBLE_DEVICES", "0"}};
  Environment by_bus = plain;
  by_bus["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  EXPECT_TRUE(needs_cuda_order(plain, mixed()));
  EXPECT_FALSE(needs_cuda_order(by_bus, mixed()));
  EXPECT_FALSE(needs_cuda_order(plain, four()));
  EXPECT_FALSE(needs_cuda_order({{"CUDA_VISIBLE_DEVICES", "GPU-fa"}}, mixed()));
  EXPECT_FALSE(needs_cuda_order({}, mixed()));

  // libcuda, asked in the same environment, lists only what is visible.
  const auto asked = resolve_visibility(plain, mixed(), {}, CudaDevices{"0000:41:00.0"});
  EXPECT_EQ(indices(asked), Order{1});
  EXPECT_TRUE(asked.ordinals_certain);
  EXPECT_TRUE(asked.warnings.empty());
  EXPECT_EQ(indices(resolve_visibility(by_bus, mixed(), {}, {})), Order{0});

  const auto unasked = resolve_visibility(plain, mixed(), {}, {});
  EXPECT_FALSE(unasked.ordinals_certain);
  ASSERT_EQ(unasked.warnings.size(), 1U);
  EXPECT_EQ(unasked.warnings[0].code, "cuda-order-uncertain");
}

TEST(NvmlVisibility, AskCuda) {
  const auto host =
      Host{HostRoot(), [](const std::string&) { return Library::open(FAKE_CUDA); }, std::make_shared<SystemClock>()};
  ::setenv("ERGOMETER_FAKE_CUDA", "0000:41:00.0,0000:01:00.0", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  ::unsetenv("CUDA_DEVICE_ORDER");
  const auto same = ask_cuda(host, {{"CUDA_VISIBLE_DEVICES", "0"}});
  ASSERT_TRUE(same);
  EXPECT_EQ(*same, CudaDevices{"0000:41:00.0"});
  // The command's environment differs from ours: libcuda would answer another question.
  EXPECT_FALSE(ask_cuda(host, {{"CUDA_VISIBLE_DEVICES", "1"}}));
  EXPECT_FALSE(ask_cuda(host, {}));
  ::unsetenv("ERGOMETER_FAKE_CUDA");
  EXPECT_FALSE(ask_cuda(host, {{"CUDA_VISIBLE_DEVICES", "0"}}));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(NvmlVisibility, BusIdsCompareAcrossForms) {
  EXPECT_EQ(canonical_bus_id("00000000:3B:00.0"), canonical_bus_id("0000:3b:00.0"));
  EXPECT_NE(canonical_bus_id("0000:3b:00.0"), canonical_bus_id("0000:3c:00.0"));
  EXPECT_EQ(canonical_bus_id("nonsense"), "nonsense");
  EXPECT_EQ(canonical_bus_id(""), "");
}

}  // namespace
}  // namespace ergometer::nvml
