// The table gpu_metrics of the amdgpu driver.
#include "device/amdgpu/gpu_metrics.hpp"

#include "target.hpp"

using namespace ergometer;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto table = amdgpu::parse_gpu_metrics(fuzz_text(data, size));
  if (!table) return 0;
  fuzz_check(size >= 4);
  fuzz_check(table->format >= 1 && table->format <= 3);
  fuzz_check(!table->apu || (!table->energy_ticks && !table->socket_w));
  fuzz_check(!table->socket_w || (*table->socket_w >= 0 && *table->socket_w < 65535));
  fuzz_check(!table->gfx_active || *table->gfx_active >= 0);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  const auto table = [&](unsigned size, char format, char content) {
    std::string bytes(size, '\x11');
    bytes[0] = static_cast<char>(size & 0xff);
    bytes[1] = static_cast<char>(size >> 8);
    bytes[2] = format;
    bytes[3] = content;
    seeds.push_back(std::move(bytes));
  };
  const unsigned sizes[] = {80, 96, 104, 120, 288, 360, 384, 2208, 3872};
  for (std::size_t i = 0; i < std::size(sizes); ++i) table(sizes[i], 1, static_cast<char>(i));
  table(1664, 1, 6);
  table(120, 2, 2);
  table(264, 3, 0);
  table(120, 9, 9);
  return seeds;
}
