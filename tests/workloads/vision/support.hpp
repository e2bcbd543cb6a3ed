// What the tests of the vision workloads share: small pictures in files, and the outcome of an opened data set.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "support/temp_dir.hpp"
#include "vision/encode.hpp"
#include "vision/picture.hpp"

namespace ergometer::workload::vision {

// A smooth picture that differs at each place: red rises to the right, green downwards, blue is `blue`.
inline std::vector<std::uint8_t> slopes(Size size, std::uint8_t blue) {
  std::vector<std::uint8_t> values;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      values.push_back(static_cast<std::uint8_t>(x * 255 / size.width));
      values.push_back(static_cast<std::uint8_t>(y * 255 / size.height));
      values.push_back(blue);
    }
  }
  return values;
}

inline void write_picture(const test::TempDir& folder, const std::string& name, Size size = {48, 40},
                          std::uint8_t blue = 90) {
  const auto path = folder / name;
  std::filesystem::create_directories(path.parent_path());
  const auto values = slopes(size, blue);
  const bool png = path.extension() == ".png";
  const auto done = png ? write_png(path.string(), size, 3, values) : write_jpeg(path.string(), size, 3, values);
  ASSERT_TRUE(done) << done.error().message;
}

inline std::vector<std::int64_t> first_numbers(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace ergometer::workload::vision
