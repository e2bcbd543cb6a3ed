#include "vision/resample.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ergometer::workload::vision {
namespace {

// Half the width of the triangle, in input pixels.
double support(double length, int outputs) { return std::max(1.0, length / outputs); }

template <int kChannels>
void filter_row(const std::vector<float>& row, const AxisFilter& filter, int width, bool mirror, std::uint8_t* output) {
  for (int x = 0; x < width; ++x) {
    const float* weight = filter.weights.data() + static_cast<std::ptrdiff_t>(x) * filter.taps;
    const float* input =
        row.data() + static_cast<std::ptrdiff_t>(filter.first[static_cast<std::size_t>(x)]) * kChannels;
    float sum[kChannels] = {};
    for (int k = 0; k < filter.taps; ++k, input += kChannels) {
      for (int c = 0; c < kChannels; ++c) sum[c] += weight[k] * input[c];
    }
    std::uint8_t* pixel = output + static_cast<std::ptrdiff_t>(mirror ? width - 1 - x : x) * kChannels;
    for (int c = 0; c < kChannels; ++c) pixel[c] = static_cast<std::uint8_t>(sum[c] + 0.5F);
  }
}

// The weighted sum of `filter.taps` rows, as floats.
void filter_column(const std::uint8_t* rows, std::size_t stride, const float* weights, int taps,
                   std::vector<float>& sum) {
  std::fill(sum.begin(), sum.end(), 0.0F);
  for (int k = 0; k < taps; ++k, rows += stride) {
    const float weight = weights[k];
    if (weight == 0) continue;
    for (std::size_t i = 0; i < stride; ++i) sum[i] += weight * static_cast<float>(rows[i]);
  }
}

}  // namespace

Region needed_region(const Request& request, double scale, Size whole) {
  constexpr double kMargin = 1;
  const auto span = [&](double begin, double length, double limit, double limit_length, int outputs, int size) {
    const double reach = support(length * scale, outputs) + kMargin;
    const double low = std::max({begin * scale - reach, limit * scale - kMargin, 0.0});
    const double high =
        std::min({(begin + length) * scale + reach, (limit + limit_length) * scale + kMargin, double(size)});
    return std::pair(static_cast<int>(std::floor(low)), static_cast<int>(std::ceil(high)));
  };
  const Box& box = request.box;
  const Box& limits = request.limits;
  const auto [left, right] = span(box.left, box.width, limits.left, limits.width, request.target.width, whole.width);
  const auto [top, bottom] = span(box.top, box.height, limits.top, limits.height, request.target.height, whole.height);
  return {left, top, right, bottom};
}

void place(const Request& request, double scale, int left, int top, Pixels& pixels) {
  const auto moved = [&](const Box& box) {
    return Box{box.left * scale - left, box.top * scale - top, box.width * scale, box.height * scale};
  };
  pixels.box = moved(request.box);
  pixels.limits = moved(request.limits);
}

void make_filter(double begin, double length, double low, double high, int outputs, AxisFilter& filter) {
  const double scale = length / outputs;
  const double reach = support(length, outputs);
  const int lowest = static_cast<int>(std::floor(low + 1e-6));
  const int highest = std::max(lowest + 1, static_cast<int>(std::ceil(high - 1e-6)));
  const int taps = std::min(static_cast<int>(std::ceil(2 * reach)) + 1, highest - lowest);
  filter.taps = taps;
  filter.first.assign(static_cast<std::size_t>(outputs), 0);
  filter.weights.assign(static_cast<std::size_t>(outputs) * static_cast<std::size_t>(taps), 0.0F);
  for (int i = 0; i < outputs; ++i) {
    const double centre = begin + (i + 0.5) * scale;
    const int first = std::clamp(static_cast<int>(std::floor(centre - reach + 0.5)), lowest, highest - taps);
    float* weights = filter.weights.data() + static_cast<std::ptrdiff_t>(i) * taps;
    double sum = 0;
    for (int k = 0; k < taps; ++k) {
      const double weight = std::max(0.0, 1.0 - std::fabs(first + k + 0.5 - centre) / reach);
      weights[k] = static_cast<float>(weight);
      sum += weight;
    }
    for (int k = 0; k < taps; ++k) weights[k] = static_cast<float>(weights[k] / sum);
    filter.first[static_cast<std::size_t>(i)] = first;
  }
}

void resample(const Pixels& pixels, Size target, bool mirror, ResampleScratch& scratch, std::uint8_t* output) {
  const Box& box = pixels.box;
  const Box& limits = pixels.limits;
  const auto clipped = [](double begin, double length, int size) {
    return std::pair(std::max(0.0, begin), std::min(static_cast<double>(size), begin + length));
  };
  const auto [left, right] = clipped(limits.left, limits.width, pixels.size.width);
  const auto [top, bottom] = clipped(limits.top, limits.height, pixels.size.height);
  make_filter(box.left, box.width, left, right, target.width, scratch.horizontal);
  make_filter(box.top, box.height, top, bottom, target.height, scratch.vertical);
  const std::size_t stride = static_cast<std::size_t>(pixels.size.width) * static_cast<std::size_t>(pixels.channels);
  scratch.row.resize(stride);
  const AxisFilter& vertical = scratch.vertical;
  for (int y = 0; y < target.height; ++y) {
    const auto first = static_cast<std::size_t>(vertical.first[static_cast<std::size_t>(y)]);
    filter_column(pixels.values.data() + first * stride, stride,
                  vertical.weights.data() + static_cast<std::ptrdiff_t>(y) * vertical.taps, vertical.taps, scratch.row);
    std::uint8_t* line = output + static_cast<std::ptrdiff_t>(y) * target.width * pixels.channels;
    if (pixels.channels == 1) {
      filter_row<1>(scratch.row, scratch.horizontal, target.width, mirror, line);
    } else {
      filter_row<3>(scratch.row, scratch.horizontal, target.width, mirror, line);
    }
  }
}

}  // namespace ergometer::workload::vision
