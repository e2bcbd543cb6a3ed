// Resizing of 8-bit pictures with a triangle filter that widens as the picture shrinks: what PIL and torchvision call
// bilinear with antialiasing. Used by every picture that is read.
#pragma once

#include <cstdint>
#include <vector>

#include "vision/picture.hpp"

namespace ergometer::workload::vision {

// Weights of one axis: output i is the sum over k < taps of weights[i * taps + k] * input[first[i] + k].
struct AxisFilter {
  int taps = 0;
  std::vector<int> first;
  std::vector<float> weights;
};

// `begin` and `length` of the input, within `low` to `high`, become `outputs` samples. The weights of each sum to 1.
void make_filter(double begin, double length, double low, double high, int outputs, AxisFilter& filter);

// Memory of resample() that is used again.
struct ResampleScratch {
  AxisFilter horizontal;
  AxisFilter vertical;
  std::vector<float> row;
};

// pixels.box to target.height rows of target.width pixels at `output`, mirrored left to right on request. 1 or 3
// channels. Values are rounded once, at the end.
void resample(const Pixels& pixels, Size target, bool mirror, ResampleScratch& scratch, std::uint8_t* output);

}  // namespace ergometer::workload::vision
