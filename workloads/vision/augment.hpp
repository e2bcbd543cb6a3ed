// Which part of a picture a sample is, and how training varies it. Used by the data sets.
#pragma once

#include <cstdint>

#include "vision/picture.hpp"
#include "vision/random.hpp"

namespace ergometer::workload::vision {

// A part of 8 to 100 % of the area and an aspect ratio of 3/4 to 4/3, resized to side x side: torchvision's
// RandomResizedCrop with its defaults, the middle where ten trials do not fit.
[[nodiscard]] Request random_resized_crop(Size picture, int side, Random& random);

// The shorter side resized to side * 256 / 224, then the middle side x side, as torchvision's evaluation does it.
[[nodiscard]] Request centre_crop(Size picture, int side);

// All of the picture, whatever its aspect ratio.
[[nodiscard]] Request whole_picture(Size picture, int side);

// The geometry of an X-ray in training, on a square grey picture: turned about its middle by `degrees` (nearest pixel,
// as torchvision's RandomRotation), surrounded by `pad` black pixels, and cut to `side` from `left`, `top` of the
// result.
struct Turn {
  int from = 0;  // side of the input
  double degrees = 0;
  int pad = 0;
  int left = 0;
  int top = 0;
  int side = 0;
};
void turn_and_crop(const std::uint8_t* input, const Turn& turn, std::uint8_t* output);

}  // namespace ergometer::workload::vision
