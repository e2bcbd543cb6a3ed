// What the record holds of GPUs that are shared: whose processes run on them, and what each MIG slice does.
#include <gmock/gmock.h>

#include "nvml/nvml_world.hpp"

namespace ergometer::test {
namespace {

using testing::Each;
using testing::Optional;

// A host where this program is process 100 and the command 101; 500 is somebody else's.
void lay_out_host(NvmlWorld& world) {
  const auto status = [&](const std::string& pid, int parent, const std::string& ns) {
    world.tree.write("/proc/" + pid + "/status", "PPid:\t" + std::to_string(parent) + "\nNSpid:\t" + ns + "\n");
  };
  world.tree.write("/proc/2/comm", "kthreadd\n");
  status("self", 1, "100");
  status("100", 1, "100");
  status("101", 100, "101");
  status("500", 1, "500");
  world.use_tree();
}

TEST(NvmlShares, ProcessesByOwner) {
  NvmlWorld world;
  lay_out_host(world);
  world.discover("gpu.processes = 101:1000:60:30 500:2000:20:50 4000001:5368709120:10:0\n");
  const auto slow = world.poll("gpu0-slow", 5, 5);
  const auto first = [&](const char* column) { return slow.column(column)[0]; };
  EXPECT_EQ(first("process_count"), 3);
  EXPECT_EQ(first("tree_process_count"), 1);
  EXPECT_EQ(first("foreign_process_count"), 1);
  EXPECT_EQ(first("unattributed_process_count"), 1);
  EXPECT_EQ(first("unattributed_memory_bytes"), 5368709120.0);
  EXPECT_NEAR(*first("process_active_ratio"), 0.9, 1e-12);
  EXPECT_EQ(first("tree_active_ratio"), 0.6);
  EXPECT_EQ(first("foreign_active_ratio"), 0.2);
  EXPECT_NEAR(*first("process_memory_active_ratio"), 0.8, 1e-12);
  EXPECT_EQ(first("tree_memory_active_ratio"), 0.3);
  EXPECT_EQ(first("foreign_memory_active_ratio"), 0.5);
}

TEST(NvmlShares, F86_ProcessIdsFromAnotherNamespace) {
  NvmlWorld world;
  world.tree.write("/proc/2/comm", "python\n");
  world.tree.write("/proc/self/status", "PPid:\t1\nNSpid:\t77\n");
  world.use_tree();
  world.discover("gpu.processes = 4000001:5368709120:50:50\n");
  const auto slow = world.poll("gpu0-slow", 5, 5);
  EXPECT_EQ(slow.column("unattributed_process_count")[0], 1);
  EXPECT_EQ(slow.column("unattributed_memory_bytes")[0], 5368709120.0);
  EXPECT_EQ(slow.column("foreign_process_count")[0], 0) << "no false alarm";
  EXPECT_EQ(slow.column("tree_process_count")[0], 0);
  EXPECT_EQ(slow.column("tree_active_ratio")[0], 0.0) << "nothing is known to be the command's";
  EXPECT_TRUE(slow.failures.empty());
}

TEST(NvmlShares, MoreThanAllOfOneProcessIsRejected) {
  NvmlWorld world;
  lay_out_host(world);
  world.discover("gpu.processes = 101:1000:60:30 500:2000:20:101\n");
  const auto slow = world.poll("gpu0-slow", 5, 5);
  EXPECT_THAT(slow.column("tree_active_ratio"), Each(std::nullopt));
  EXPECT_THAT(slow.column("foreign_memory_active_ratio"), Each(std::nullopt));
  EXPECT_EQ(slow.column("process_count")[0], 2);
}

TEST(NvmlShares, F41_SliceOfTheCommandIsMarked) {
  NvmlWorld world;
  world.options.environment["CUDA_VISIBLE_DEVICES"] = "MIG-b";
  world.discover("gpu.mig = MIG-a/1/0/14 MIG-b/2/0/42\n");
  const auto& gpu = world.found.node.gpus.at(0);
  ASSERT_EQ(gpu.slices.size(), 2u);
  EXPECT_EQ(gpu.slices[0].uuid, "MIG-a");
  EXPECT_EQ(gpu.slices[0].gpu_instance, 1);
  EXPECT_EQ(gpu.slices[0].multiprocessors, 14.0);
  EXPECT_EQ(gpu.slices[1].memory_bytes, 10240.0 * 1024 * 1024);
  EXPECT_FALSE(gpu.slices[0].visible);
  EXPECT_TRUE(gpu.slices[1].visible);
}

TEST(NvmlShares, F41_OldFormMarksItsSliceToo) {
  NvmlWorld world;
  world.options.environment["CUDA_VISIBLE_DEVICES"] = "MIG-GPU-x/1/0";
  world.discover("gpu.uuid = GPU-x\ngpu.mig = MIG-a/1/0 MIG-b/2/0\n");
  const auto& slices = world.found.node.gpus.at(0).slices;
  EXPECT_TRUE(slices.at(0).visible);
  EXPECT_FALSE(slices.at(1).visible);
  EXPECT_EQ(slices[0].multiprocessors, std::nullopt) << "this driver does not tell";
}

TEST(NvmlShares, F44_ActivityOfEachSlice) {
  NvmlWorld world;
  world.discover(
      "gpu.mig = MIG-a/1/0/14 MIG-b/2/0/42\ngpu.mig1.gpm.2 = 80\ngpu.mig1.gpm.10 = 30\ngpu.mig2.gpm.2 = 50\n");
  ASSERT_TRUE(world.has("gpu0-activity", "mig1_sm_active_ratio"));
  const auto activity = world.poll("gpu0-activity", 3, 1);
  EXPECT_THAT(activity.column("mig1_sm_active_ratio").back(), Optional(0.8));
  EXPECT_THAT(activity.column("mig1_dram_active_ratio").back(), Optional(0.3));
  EXPECT_THAT(activity.column("mig2_sm_active_ratio").back(), Optional(0.5));
  EXPECT_THAT(activity.column("mig2_dram_active_ratio"), Each(std::nullopt)) << "not told is not 0";
}

TEST(NvmlShares, SlicesWithoutGpmHaveNoActivity) {
  NvmlWorld world;
  world.discover("gpu.mig = MIG-a/1/0/14\n");
  EXPECT_EQ(world.sensor("gpu0-activity"), nullptr);
}

}  // namespace
}  // namespace ergometer::test
