#include "device/amdgpu/gpu_metrics.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace ergometer::amdgpu {
namespace {

// Where a revision keeps the fields, in bytes from the start of the table.
struct Layout {
  int content;
  std::size_t least_size, most_size;  // structure_size that belongs to this layout
  std::size_t energy, energy_bytes;
  std::size_t power, gfx, memory;
  bool momentary;
};

// Of format 1. Fields follow each other with the natural alignment of C; 1.6 came in two layouts of very different
// size.
constexpr std::size_t kAny = 65535;
constexpr Layout kLayouts[] = {
    {0, 80, kAny, 36, 4, 34, 28, 30, false},  {1, 96, kAny, 24, 8, 22, 16, 18, false},
    {2, 104, kAny, 24, 8, 22, 16, 18, false}, {3, 120, kAny, 24, 8, 22, 16, 18, false},
    {4, 288, kAny, 24, 8, 10, 12, 14, true},  {5, 360, kAny, 88, 8, 10, 12, 14, true},
    {6, 384, 384, 88, 8, 10, 12, 14, true},   {6, 1664, kAny, 16, 8, 10, 12, 14, true},
    {7, 2208, kAny, 24, 8, 10, 12, 14, true}, {8, 3872, kAny, 24, 8, 10, 12, 14, true},
};

// Unsigned, in the byte order of the hosts that have these devices. Missing if beyond the end or all ones.
std::optional<std::uint64_t> number_at(std::string_view bytes, std::size_t offset, std::size_t width) {
  if (offset + width > bytes.size()) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  const std::uint64_t all_ones = width == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * width)) - 1;
  return value == all_ones ? std::nullopt : std::optional(value);
}

std::optional<double> scaled(std::optional<std::uint64_t> value, double unit) {
  return value ? std::optional(static_cast<double>(*value) * unit) : std::nullopt;
}

}  // namespace

Result<GpuMetrics> parse_gpu_metrics(std::string_view bytes) {
  if (bytes.size() < 4)
    return fail(ErrorCode::corrupt, fmt::format("gpu_metrics of {} bytes has no header", bytes.size()));
  const auto size = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0])) |
                    static_cast<std::size_t>(static_cast<unsigned char>(bytes[1])) << 8;
  GpuMetrics out;
  out.format = static_cast<unsigned char>(bytes[2]);
  out.content = static_cast<unsigned char>(bytes[3]);
  if (size > bytes.size())
    return fail(ErrorCode::corrupt, fmt::format("gpu_metrics revision {}.{} says {} bytes and has {}", out.format,
                                                out.content, size, bytes.size()));
  bytes = bytes.substr(0, size);
  if (out.format == 2 || out.format == 3) {
    out.apu = true;
    return out;
  }
  if (out.format == 1) {
    for (const auto& layout : kLayouts) {
      if (layout.content != out.content || size < layout.least_size || size > layout.most_size) continue;
      out.energy_ticks = number_at(bytes, layout.energy, layout.energy_bytes);
      out.energy_bits = static_cast<int>(layout.energy_bytes * 8);
      out.socket_w = scaled(number_at(bytes, layout.power, 2), 1.0);
      out.momentary = layout.momentary;
      out.gfx_active = scaled(number_at(bytes, layout.gfx, 2), 0.01);
      out.memory_active = scaled(number_at(bytes, layout.memory, 2), 0.01);
      return out;
    }
  }
  return fail(ErrorCode::unsupported,
              fmt::format("gpu_metrics revision {}.{} with {} bytes is not known", out.format, out.content, size));
}

}  // namespace ergometer::amdgpu
