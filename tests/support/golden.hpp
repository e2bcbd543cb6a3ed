// Text compared with a file of tests/golden. ERGOMETER_UPDATE_GOLDEN=1 writes the files anew; look at the difference then.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace ergometer::test {

inline void expect_golden(const std::string& name, const std::string& text) {
  const auto file = std::filesystem::path(ERGOMETER_SOURCE_DIR) / "tests" / "golden" / name;
  if (std::getenv("ERGOMETER_UPDATE_GOLDEN")) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return;
  }
  std::ifstream in(file, std::ios::binary);
  const std::string expected{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text, expected) << file << " says otherwise (ERGOMETER_UPDATE_GOLDEN=1 writes it anew)";
}

}  // namespace ergometer::test
