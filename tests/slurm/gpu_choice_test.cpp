// Which GPU a task of a job takes, in the reference workloads.
#include "core/gpu_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ergometer::workload {
namespace {

TEST(GpuChoice, F91_OneVisibleGpuATask) {
  EXPECT_EQ(*gpu_of(3, 1), 0);  // each task sees its own as number 0
  EXPECT_EQ(*gpu_of(3, 8), 3);
  for (int rank = 0; rank < 8; ++rank) {
    const auto gpu = gpu_of(rank, 2);
    EXPECT_EQ(static_cast<bool>(gpu), rank < 2);
    if (!gpu) {
      EXPECT_THAT(gpu.error().message, testing::HasSubstr("there are 2"));
    }
  }
}

}  // namespace
}  // namespace ergometer::workload
