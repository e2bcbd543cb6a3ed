// A folder that lives as long as a test, with helpers to lay out fake /sys and /proc trees in it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ergometer::test {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ergometer-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) ADD_FAILURE() << "cannot create " << pattern;
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const {
    return path_ / std::filesystem::path(name).relative_path();
  }
  // Writes (or overwrites) a file below the folder, creating its folders.
  void write(std::string_view name, std::string_view content) const {
    const auto file = *this / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }
  std::string read(std::string_view name) const {
    std::ifstream in(*this / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path path_;
};

// The folder of recorded traces and data, or "" where it is absent (such tests skip with a reason): the environment
// variable ERGOMETER_SHARED, else ../shared beside the checkout.
inline std::filesystem::path shared_dir() {
  if (const char* set = std::getenv("ERGOMETER_SHARED")) return set;
  const auto beside = std::filesystem::path(ERGOMETER_SOURCE_DIR).parent_path() / "shared";
  return std::filesystem::exists(beside) ? beside : std::filesystem::path{};
}

}  // namespace ergometer::test
