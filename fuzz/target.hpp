// What the fuzz targets share: one function a target, run by libFuzzer or by the driver in fuzz/driver.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// Well-formed inputs to start from; the driver mutates them, and writes them as a corpus for libFuzzer.
std::vector<std::string> fuzz_seeds();

inline std::string_view fuzz_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A condition that holds for every input; ends the program otherwise, in any build.
inline void fuzz_check(bool condition) {
  if (!condition) __builtin_trap();
}
