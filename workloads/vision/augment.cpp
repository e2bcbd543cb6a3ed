#include "vision/augment.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ergometer::workload::vision {
namespace {

Request crop_then_resize(int left, int top, int width, int height, int side) {
  const Box box{static_cast<double>(left), static_cast<double>(top), static_cast<double>(width),
                static_cast<double>(height)};
  return {box, box, {side, side}};
}

Box all_of(Size picture) { return {0, 0, static_cast<double>(picture.width), static_cast<double>(picture.height)}; }

}  // namespace

Request random_resized_crop(Size picture, int side, Random& random) {
  constexpr double kLeastArea = 0.08;
  constexpr double kLeastRatio = 3.0 / 4.0;
  constexpr double kMostRatio = 4.0 / 3.0;
  constexpr int kTrials = 10;
  const double area = static_cast<double>(picture.width) * picture.height;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double part = area * random.between(kLeastArea, 1);
    const double ratio = std::exp(random.between(std::log(kLeastRatio), std::log(kMostRatio)));
    const auto width = static_cast<int>(std::lround(std::sqrt(part * ratio)));
    const auto height = static_cast<int>(std::lround(std::sqrt(part / ratio)));
    if (width < 1 || height < 1 || width > picture.width || height > picture.height) continue;
    const auto left = static_cast<int>(random.below(picture.width - width + 1));
    const auto top = static_cast<int>(random.below(picture.height - height + 1));
    return crop_then_resize(left, top, width, height, side);
  }
  int width = picture.width;
  int height = picture.height;
  const double ratio = static_cast<double>(width) / height;
  if (ratio < kLeastRatio) {
    height = std::max(1, static_cast<int>(std::lround(width / kLeastRatio)));
  } else if (ratio > kMostRatio) {
    width = std::max(1, static_cast<int>(std::lround(height * kMostRatio)));
  }
  return crop_then_resize((picture.width - width) / 2, (picture.height - height) / 2, width, height, side);
}

Request centre_crop(Size picture, int side) {
  const double shorter = std::round(side * 256.0 / 224.0);
  const double least = std::min(picture.width, picture.height);
  // The longer side is cut off to whole pixels, as torchvision does.
  const double width = std::max(shorter, std::floor(shorter * picture.width / least));
  const double height = std::max(shorter, std::floor(shorter * picture.height / least));
  const double across = picture.width / width;  // pixels of the picture for one of the resized
  const double down = picture.height / height;
  const double left = std::nearbyint((width - side) / 2);
  const double top = std::nearbyint((height - side) / 2);
  return {{left * across, top * down, side * across, side * down}, all_of(picture), {side, side}};
}

Request whole_picture(Size picture, int side) { return {all_of(picture), all_of(picture), {side, side}}; }

void turn_and_crop(const std::uint8_t* input, const Turn& turn, std::uint8_t* output) {
  constexpr double kDegree = 3.14159265358979323846 / 180;
  const double cosine = std::cos(turn.degrees * kDegree);
  const double sine = std::sin(turn.degrees * kDegree);
  const double middle = turn.from / 2.0;
  const auto inside = [&](int at) { return at >= 0 && at < turn.from; };
  for (int y = 0; y < turn.side; ++y) {
    for (int x = 0; x < turn.side; ++x) {
      const int column = x + turn.left - turn.pad;
      const int row = y + turn.top - turn.pad;
      std::uint8_t value = 0;
      if (inside(column) && inside(row)) {
        const double right = column + 0.5 - middle;
        const double down = row + 0.5 - middle;
        const auto from_x = static_cast<int>(std::floor(cosine * right - sine * down + middle));
        const auto from_y = static_cast<int>(std::floor(sine * right + cosine * down + middle));
        if (inside(from_x) && inside(from_y)) {
          value = input[static_cast<std::ptrdiff_t>(from_y) * turn.from + from_x];
        }
      }
      output[static_cast<std::ptrdiff_t>(y) * turn.side + x] = value;
    }
  }
}

}  // namespace ergometer::workload::vision
