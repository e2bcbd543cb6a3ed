#include "engine/progress.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

namespace ergometer::workload {
namespace {

TEST(Progress, OffWritesNothing) {
  std::ostringstream out;
  {
    Progress progress(out, false, "points");
    progress.start("epoch 1/2", 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    progress.advance(1, 8);
  }
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, RewritesOneLineAndRemovesIt) {
  std::ostringstream out;
  Progress progress(out, true, "points");
  progress.start("epoch 1/2", 10);
  progress.advance(1, 8);  // too soon
  EXPECT_EQ(out.str(), "");
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  progress.advance(2, 16);
  const std::string line = out.str();
  EXPECT_EQ(line.rfind("\repoch 1/2: 2/10, ", 0), 0U) << line;
  EXPECT_NE(line.find(" points/s, 0:01 left"), std::string::npos) << line;
  progress.advance(3, 24);  // less than a fifth of a second later
  EXPECT_EQ(out.str(), line);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  progress.clear();
  EXPECT_EQ(out.str().substr(line.size()), "\r" + std::string(line.size() - 1, ' ') + "\r");
}

}  // namespace
}  // namespace ergometer::workload
