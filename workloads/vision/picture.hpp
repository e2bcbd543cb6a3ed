// A decoded picture, or the part of one that is needed, and what is asked of a decoder. Used by decoders, resampling
// and augmentation.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace ergometer::workload::vision {

struct Size {
  int width = 0;
  int height = 0;
};

// A rectangle between pixels: pixel i reaches from i to i + 1.
struct Box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

// What is wanted of a picture, in pixels of the whole picture: `box` becomes `target` pixels; the filter at the box's
// edges sees nothing beyond `limits`, which hold the box (the box itself for "crop, then resize", the whole picture for
// "resize, then crop").
struct Request {
  Box box;
  Box limits;
  Size target;
};

// Chooses the request once the picture's size is known.
using Planner = std::function<Request(Size)>;

// The decoded part: rows from the top, `channels` bytes a pixel. `box` and `limits` are in its pixels; it may be
// decoded at a smaller scale than the file's. The memory is used again by the next picture.
struct Pixels {
  Size size;
  int channels = 0;
  std::vector<std::uint8_t> values;
  Box box;
  Box limits;
};

// ITU-R 601 as PIL computes it.
inline std::uint8_t luma(unsigned int red, unsigned int green, unsigned int blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

// The pixels of `whole` that resampling `request` reads, when the picture is decoded at `scale` (1: as it is); as whole
// numbers, and with a margin of one pixel at each side.
struct Region {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
};
[[nodiscard]] Region needed_region(const Request& request, double scale, Size whole);

// Sets box and limits of `pixels` from a request, a scale and where the decoded part begins.
void place(const Request& request, double scale, int left, int top, Pixels& pixels);

}  // namespace ergometer::workload::vision
