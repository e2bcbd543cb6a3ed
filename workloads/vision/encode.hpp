// Writing pictures: what the made data sets and the tests need. The same bytes for the same pixels and library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "vision/picture.hpp"

namespace ergometer::workload::vision {

// `values` are rows of size.width pixels of 1 or 3 bytes. An error names the file.
[[nodiscard]] Result<Done> write_jpeg(const std::string& path, Size size, int channels,
                                      const std::vector<std::uint8_t>& values);
[[nodiscard]] Result<Done> write_png(const std::string& path, Size size, int channels,
                                     const std::vector<std::uint8_t>& values);

}  // namespace ergometer::workload::vision
