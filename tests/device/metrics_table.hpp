// Builds gpu_metrics tables field by field, each aligned to its own width as C does. Used by the amdgpu tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace ergometer::test {

struct MetricsTable {
  std::string bytes = std::string(4, '\0');
  std::size_t widest = 4;

  void put(std::uint64_t value, std::size_t width, std::size_t count = 1) {
    widest = std::max(widest, width);
    for (std::size_t n = 0; n < count; ++n) {
      while (bytes.size() % width) bytes += '\0';
      for (std::size_t i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
    }
  }
  void u16(std::uint64_t value, std::size_t count = 1) { put(value, 2, count); }
  void u32(std::uint64_t value, std::size_t count = 1) { put(value, 4, count); }
  void u64(std::uint64_t value, std::size_t count = 1) { put(value, 8, count); }
  std::string finish(int format, int content) {
    while (bytes.size() % widest) bytes += '\0';
    bytes[0] = static_cast<char>(bytes.size() & 0xff);
    bytes[1] = static_cast<char>(bytes.size() >> 8);
    bytes[2] = static_cast<char>(format);
    bytes[3] = static_cast<char>(content);
    return bytes;
  }
};

struct MetricsValues {
  std::uint64_t energy_ticks = 655360;  // 10 J
  unsigned power_w = 300, gfx_percent = 75, memory_percent = 40;
};

// The table of revision 1.CONTENT in the field order of Linux' kgd_pp_interface.h; every other field is 7. `early`: the
// first layout of 1.6.
inline std::string metrics_v1(int content, const MetricsValues& v = {}, bool early = false) {
  MetricsTable t;
  if (content <= 3) {
    if (content == 0) t.u64(7);  // system clock
    t.u16(7, 6);                 // temperatures
    t.u16(v.gfx_percent);
    t.u16(v.memory_percent);
    t.u16(7);  // media
    t.u16(v.power_w);
    if (content == 0)
      t.u32(v.energy_ticks);
    else
      t.u64(v.energy_ticks), t.u64(7);  // system clock
    t.u16(7, 14);                       // clocks
    t.u32(7);                           // throttle status
    t.u16(7);                           // fan
    if (content == 0) {
      t.put(7, 1, 2);  // link
    } else {
      t.u16(7, 3);  // link, padding
      t.u32(7, 2);  // accumulated activity
      t.u16(7, 4);  // memory stacks
    }
    if (content >= 2) t.u64(7);  // firmware time
    if (content >= 3) t.u16(7, 4), t.u64(7);
    return t.finish(1, content);
  }
  const bool engines = content < 6 || early;
  t.u16(7, 3);  // temperatures
  t.u16(v.power_w);
  t.u16(v.gfx_percent);
  t.u16(v.memory_percent);
  if (engines) t.u16(7, 4);  // video
  if (engines && content >= 5) t.u16(7, 32);
  if (content >= 7) t.u64(7);  // memory bandwidth
  t.u64(v.energy_ticks);
  t.u64(7);                       // system clock
  if (content >= 6) t.u32(7, 6);  // residencies
  if (engines) t.u32(7);          // throttle status
  t.u32(7);                       // clock lock
  t.u16(7, 4);                    // links
  t.u32(7, 2);                    // accumulated activity
  t.u64(7, 5);                    // PCIe
  if (content >= 5) t.u32(7, 2);
  t.u64(7, 16);  // xGMI
  if (content >= 7) t.u16(7, 9);
  t.u64(7);                     // firmware time
  t.u16(7, 8 + 4 + 4 + 4 + 1);  // clocks
  t.u16(7);                     // padding or partitions
  if (!engines) {               // partitions: instances, engines, accumulated
    const std::size_t jpeg = content >= 8 ? 40 : 32, accumulated = content >= 8 ? 5 : content >= 7 ? 2 : 1;
    for (int partition = 0; partition < 8; ++partition) t.u32(7, 8), t.u16(7, jpeg + 4), t.u64(7, 8 * accumulated);
    t.u32(7);
  }
  return t.finish(1, content);
}

}  // namespace ergometer::test
