// The binary table gpu_metrics of the amdgpu driver: a header with size and revision, then fields whose places depend
// on the revision (Linux, drivers/gpu/drm/amd/include/kgd_pp_interface.h). Used by the amdgpu sensor; a fuzz target
// reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ergometer::amdgpu {

// What is read of the table. A field of all ones means "no value" and is unset.
struct GpuMetrics {
  int format = 0, content = 0;  // revision FORMAT.CONTENT
  bool apu = false;             // formats 2 and 3: a processor with graphics, without an energy counter
  std::optional<std::uint64_t> energy_ticks;
  int energy_bits = 64;            // width of that counter
  std::optional<double> socket_w;  // power of the whole package of the GPU
  bool momentary = false;          // socket_w: false: an average (1.0 to 1.3), true: current (1.4 and newer)
  std::optional<double> gfx_active, memory_active;  // 0..1; above 1 if the table says so
};

// Joules of one tick of the energy counter: 2^-16 J, 15.259 uJ (stated by the header for 1.4 and newer, and by AMD SMI
// as the counter's resolution for the older ones).
inline constexpr double kJoulesPerTick = 1.0 / 65536;

// Errors: corrupt (shorter than its header or its revision says), unsupported (a revision whose layout is not known;
// the message carries the number). `bytes` may be anything.
[[nodiscard]] Result<GpuMetrics> parse_gpu_metrics(std::string_view bytes);

}  // namespace ergometer::amdgpu
