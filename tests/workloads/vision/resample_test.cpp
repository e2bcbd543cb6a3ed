#include "vision/resample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "vision/augment.hpp"
#include "vision/random.hpp"

namespace ergometer::workload::vision {
namespace {

Pixels noise(Size size, int channels) {
  Pixels pixels;
  pixels.size = size;
  pixels.channels = channels;
  Random random(1, 2);
  for (int i = 0; i < size.width * size.height * channels; ++i) {
    pixels.values.push_back(static_cast<std::uint8_t>(random.below(256)));
  }
  pixels.box = {0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
  pixels.limits = pixels.box;
  return pixels;
}

std::vector<std::uint8_t> resized(const Pixels& pixels, Size target, bool mirror = false) {
  ResampleScratch scratch;
  std::vector<std::uint8_t> output(static_cast<std::size_t>(target.width * target.height * pixels.channels));
  resample(pixels, target, mirror, scratch, output.data());
  return output;
}

// One output pixel by the definition: a triangle over both axes, in double precision.
double by_definition(const Pixels& pixels, Size target, int x, int y, int channel) {
  const double across = pixels.box.width / target.width;
  const double down = pixels.box.height / target.height;
  const double centre_x = pixels.box.left + (x + 0.5) * across;
  const double centre_y = pixels.box.top + (y + 0.5) * down;
  double sum = 0;
  double weights = 0;
  for (int row = 0; row < pixels.size.height; ++row) {
    for (int column = 0; column < pixels.size.width; ++column) {
      const bool inside = column + 0.5 > pixels.limits.left && row + 0.5 > pixels.limits.top &&
                          column + 0.5 < pixels.limits.left + pixels.limits.width &&
                          row + 0.5 < pixels.limits.top + pixels.limits.height;
      if (!inside) continue;
      const double weight = std::max(0.0, 1 - std::fabs(column + 0.5 - centre_x) / std::max(1.0, across)) *
                            std::max(0.0, 1 - std::fabs(row + 0.5 - centre_y) / std::max(1.0, down));
      const auto at = static_cast<std::size_t>((row * pixels.size.width + column) * pixels.channels + channel);
      sum += weight * pixels.values[at];
      weights += weight;
    }
  }
  return sum / weights;
}

TEST(Resample, KnownValues) {
  Pixels pixels;
  pixels.channels = 1;
  pixels.size = {4, 1};
  pixels.values = {0, 0, 255, 255};
  pixels.box = pixels.limits = {0, 0, 4, 1};
  EXPECT_EQ(resized(pixels, {2, 1}), (std::vector<std::uint8_t>{36, 219}));  // 255 / 7 and 255 * 6 / 7
  EXPECT_EQ(resized(pixels, {1, 1}), (std::vector<std::uint8_t>{128}));
  EXPECT_EQ(resized(pixels, {4, 1}), pixels.values);
  EXPECT_EQ(resized(pixels, {4, 1}, true), (std::vector<std::uint8_t>{255, 255, 0, 0}));
  EXPECT_EQ(resized(pixels, {8, 1}), (std::vector<std::uint8_t>{0, 0, 0, 64, 191, 255, 255, 255}));
}

TEST(Resample, FollowsTheDefinition) {
  for (const int channels : {1, 3}) {
    for (const Size target : {Size{5, 7}, Size{31, 23}, Size{40, 60}, Size{1, 1}}) {
      Pixels pixels = noise({31, 23}, channels);
      for (const bool part : {false, true}) {
        if (part) {
          pixels.box = {4.3, 2.6, 20.2, 17.5};  // a resized picture's middle: the filter sees what is around
        }
        const auto output = resized(pixels, target);
        for (int y = 0; y < target.height; ++y) {
          for (int x = 0; x < target.width; ++x) {
            for (int c = 0; c < channels; ++c) {
              const auto at = static_cast<std::size_t>((y * target.width + x) * channels + c);
              EXPECT_NEAR(output[at], by_definition(pixels, target, x, y, c), 0.51) << x << ' ' << y << ' ' << c;
            }
          }
        }
      }
    }
  }
}

TEST(Resample, ACropSeesNothingAroundIt) {
  Pixels pixels = noise({20, 20}, 3);
  pixels.box = pixels.limits = {6, 5, 8, 10};
  Pixels cut;
  cut.size = {8, 10};
  cut.channels = 3;
  for (int y = 5; y < 15; ++y) {
    const auto row = pixels.values.begin() + (y * 20 + 6) * 3;
    cut.values.insert(cut.values.end(), row, row + 8 * 3);
  }
  cut.box = cut.limits = {0, 0, 8, 10};
  EXPECT_EQ(resized(pixels, {3, 3}), resized(cut, {3, 3}));
  EXPECT_EQ(resized(pixels, {30, 30}), resized(cut, {30, 30}));
}

TEST(Augment, CropsAreInsideAndOfTheRightShape) {
  for (const Size size : {Size{500, 375}, Size{20, 900}, Size{900, 20}, Size{1, 1}, Size{7, 5}}) {
    double least = 1;
    double most = 0;
    for (std::uint64_t i = 0; i < 500; ++i) {
      Random random(42, i);
      const Box box = random_resized_crop(size, 224, random).box;
      ASSERT_GE(box.left, 0);
      ASSERT_GE(box.top, 0);
      ASSERT_GE(box.width, 1);
      ASSERT_GE(box.height, 1);
      ASSERT_LE(box.left + box.width, size.width);
      ASSERT_LE(box.top + box.height, size.height);
      const double share = box.width * box.height / (static_cast<double>(size.width) * size.height);
      least = std::min(least, share);
      most = std::max(most, share);
      if (size.width == 500) {
        ASSERT_GT(box.width / box.height, 0.73);
        ASSERT_LT(box.width / box.height, 1.36);
      }
    }
    if (size.width == 500) {
      EXPECT_LT(least, 0.1);
      EXPECT_GT(least, 0.075);
      EXPECT_GT(most, 0.85);
    }
    // 20 / (3/4) of 900 rows: what is left where no trial fits.
    if (size.width == 20) {
      EXPECT_NEAR(most * 900, 27, 1);
    }
  }
}

TEST(Augment, CentreCropIsTorchvisions) {
  // 500x375 to 341x256, of which 224x224 begin at (58, 16): round-half-even of 58.5 and 16.
  const Request request = centre_crop({500, 375}, 224);
  EXPECT_NEAR(request.box.left, 58 * 500.0 / 341, 1e-9);
  EXPECT_NEAR(request.box.top, 16 * 375.0 / 256, 1e-9);
  EXPECT_NEAR(request.box.width, 224 * 500.0 / 341, 1e-9);
  EXPECT_NEAR(request.box.height, 224 * 375.0 / 256, 1e-9);
  EXPECT_EQ(request.limits.width, 500);
  EXPECT_EQ(centre_crop({400, 400}, 299).box.width, 299 * 400.0 / 342);
}

TEST(Augment, TurningKeepsTheMiddleAndLeavesBlackCorners) {
  std::vector<std::uint8_t> input(20 * 20, 100);
  for (int x = 0; x < 20; ++x) {
    for (int y = 9; y < 11; ++y) input[static_cast<std::size_t>(y * 20 + x)] = 200;  // a level bar
  }
  const auto turned = [&](double degrees) {
    std::vector<std::uint8_t> output(20 * 20);
    turn_and_crop(input.data(), {20, degrees, 2, 2, 2, 20}, output.data());
    return output;
  };
  EXPECT_EQ(turned(0), input);
  const auto level = turned(90);
  EXPECT_EQ(level[2 * 20 + 10], 200);  // upright now
  EXPECT_EQ(level[10 * 20 + 2], 100);
  // Counter-clockwise, as torchvision: the right end of the bar rises.
  const auto slant = turned(30);
  EXPECT_EQ(slant[0], 0);
  EXPECT_EQ(slant[10 * 20 + 10], 200);
  EXPECT_EQ(slant[6 * 20 + 17], 200);
  EXPECT_EQ(slant[14 * 20 + 17], 100);
  input[10 * 20 + 18] = 255;  // a mark at the bar's right end
  EXPECT_EQ(turned(90)[1 * 20 + 10], 255);
  EXPECT_EQ(turned(-90)[18 * 20 + 9], 255);
  std::vector<std::uint8_t> padded(20 * 20, 1);
  turn_and_crop(input.data(), {20, 0, 2, 0, 0, 20}, padded.data());
  EXPECT_EQ(padded[0], 0);
  EXPECT_EQ(padded[2 * 20 + 2], 100);
}

TEST(Random, StreamsDifferAndRepeat) {
  Random first(1, 0);
  Random again(1, 0);
  Random other(1, 1);
  Random seed(2, 0);
  const auto value = first.next();
  EXPECT_EQ(value, again.next());
  EXPECT_NE(value, other.next());
  EXPECT_NE(value, seed.next());
  double sum = 0;
  for (int i = 0; i < 10000; ++i) sum += first.uniform();
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
  for (int i = 0; i < 100; ++i) EXPECT_LT(first.below(3), 3);
}

}  // namespace
}  // namespace ergometer::workload::vision
