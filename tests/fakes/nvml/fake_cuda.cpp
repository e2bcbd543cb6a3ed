// A libcuda.so.1 for tests: lists the devices that ERGOMETER_FAKE_CUDA names by PCI bus id, fastest first, separated
// by commas, after the numbers of CUDA_VISIBLE_DEVICES if that is set.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CUDA_CALL extern "C" __attribute__((visibility("default"))) int

namespace {

std::vector<std::string> parts_of(const char* text) {
  std::vector<std::string> parts;
  for (std::string rest = text ? text : ""; !rest.empty();) {
    const auto comma = rest.find(',');
    parts.push_back(rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return parts;
}

std::vector<std::string>& devices() {
  static std::vector<std::string> list;
  return list;
}

}  // namespace

CUDA_CALL cuInit(unsigned) {
  const auto all = parts_of(std::getenv("ERGOMETER_FAKE_CUDA"));
  if (all.empty()) return 100;  // CUDA_ERROR_NO_DEVICE
  devices().clear();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    for (const auto& number : parts_of(visible))
      if (const auto i = std::strtoul(number.c_str(), nullptr, 10); i < all.size()) devices().push_back(all[i]);
  } else {
    devices() = all;
  }
  return 0;
}

CUDA_CALL cuDeviceGetCount(int* count) {
  *count = static_cast<int>(devices().size());
  return 0;
}

CUDA_CALL cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}

CUDA_CALL cuDeviceGetPCIBusId(char* out, int length, int device) {
  std::snprintf(out, static_cast<std::size_t>(length), "%s", devices().at(static_cast<std::size_t>(device)).c_str());
  return 0;
}
