// Made pictures whose classes differ in what a convolution can see. Not a model of any real data set.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <system_error>

#include "vision/data.hpp"
#include "vision/encode.hpp"
#include "vision/picture.hpp"
#include "vision/random.hpp"

namespace ergometer::workload::vision {
namespace {

constexpr std::int64_t kOneOf = 5;  // one round of five is for validation

// Whether a point of the plane, in cells, belongs to the pattern; u and v are from the middle of its cell.
struct Pattern {
  const char* name;
  bool (*covers)(double x, double y, double u, double v);
};

bool odd(double value) { return (static_cast<std::int64_t>(std::floor(value)) & 1) != 0; }

constexpr std::array<Pattern, 8> kPatterns = {{
    {"checks", [](double x, double y, double, double) { return odd(x) != odd(y); }},
    {"crosses",
     [](double, double, double u, double v) {
       return std::min(std::fabs(u), std::fabs(v)) < 0.1 && std::max(std::fabs(u), std::fabs(v)) < 0.42;
     }},
    {"diagonals", [](double x, double y, double, double) { return odd(x + y); }},
    {"discs", [](double, double, double u, double v) { return u * u + v * v < 0.13; }},
    {"dots", [](double, double, double u, double v) { return u * u + v * v < 0.02; }},
    {"rings", [](double, double, double u, double v) { return u * u + v * v < 0.17 && u * u + v * v > 0.08; }},
    {"squares", [](double, double, double u, double v) { return std::max(std::fabs(u), std::fabs(v)) < 0.3; }},
    {"stripes", [](double, double y, double, double) { return odd(y); }},
}};

struct Canvas {
  Size size;
  int channels = 1;
  std::vector<std::uint8_t> values;

  void allot() {
    values.resize(static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) *
                  static_cast<std::size_t>(channels));
  }
};

std::uint8_t byte(double value) { return static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)); }

Canvas paint_photo(std::size_t label, Random& random) {
  Canvas canvas;
  canvas.channels = 3;
  canvas.size = {static_cast<int>(240 + random.below(241)), static_cast<int>(240 + random.below(241))};
  canvas.allot();
  const double cell = random.between(36, 72);
  const double shift_x = random.between(0, 4);
  const double shift_y = random.between(0, 4);
  double ground[3];
  double ink[3];
  for (int c = 0; c < 3; ++c) {
    ground[c] = random.between(30, 225);
    // A hint of the class in the colour: red, green and blue rise with the bits of its number.
    ink[c] = std::fmod(ground[c] + 127 + random.between(-40, 40), 256) * 0.5 + ((label >> c) & 1 ? 127 : 0);
  }
  std::size_t at = 0;
  for (int row = 0; row < canvas.size.height; ++row) {
    for (int column = 0; column < canvas.size.width; ++column) {
      const double x = column / cell + shift_x;
      const double y = row / cell + shift_y;
      const bool covered = kPatterns[label].covers(x, y, x - std::floor(x) - 0.5, y - std::floor(y) - 0.5);
      const double noise = random.between(-12, 12);
      for (int c = 0; c < 3; ++c) canvas.values[at++] = byte((covered ? ink[c] : ground[c]) + noise);
    }
  }
  return canvas;
}

// 1 within an ellipse, falling to 0 at twice its size.
double ellipse(double x, double y, double middle_x, double middle_y, double width, double height) {
  const double u = (x - middle_x) / width;
  const double v = (y - middle_y) / height;
  return std::clamp(2.0 - std::sqrt(u * u + v * v), 0.0, 1.0);
}

Canvas paint_xray(std::size_t label, Random& random) {
  struct Spot {
    double x, y, radius;
  };
  Canvas canvas;
  canvas.size = {static_cast<int>(256 + random.below(193)), static_cast<int>(256 + random.below(193))};
  canvas.allot();
  const double body = random.between(190, 235);
  const double lungs = random.between(70, 110);
  const double middle = random.between(0.47, 0.53);
  std::vector<Spot> spots;
  if (label == 1) {
    for (std::int64_t i = 3 + random.below(4); i > 0; --i) {
      spots.push_back({middle + (random.coin() ? 0.21 : -0.21) + random.between(-0.08, 0.08), random.between(0.3, 0.7),
                       random.between(0.03, 0.07)});
    }
  }
  std::size_t at = 0;
  for (int row = 0; row < canvas.size.height; ++row) {
    for (int column = 0; column < canvas.size.width; ++column) {
      const double x = static_cast<double>(column) / canvas.size.width;
      const double y = static_cast<double>(row) / canvas.size.height;
      double value =
          body - lungs * (ellipse(x, y, middle - 0.21, 0.5, 0.1, 0.22) + ellipse(x, y, middle + 0.21, 0.5, 0.1, 0.22));
      for (const Spot& spot : spots) value += 90 * ellipse(x, y, spot.x, spot.y, spot.radius / 2, spot.radius / 2);
      canvas.values[at++] = byte(value + random.between(-8, 8));
    }
  }
  return canvas;
}

// How many pictures, and an error if they do not fill both splits with every class.
Result<std::int64_t> picture_count(const MakeDataOptions& options, std::int64_t usual, std::int64_t classes) {
  const std::int64_t count = options.count > 0 ? options.count : usual;
  if (count < classes * kOneOf) {
    return Error{Fault::usage,
                 fmt::format("{} pictures do not give each of {} classes one for validation", count, classes),
                 fmt::format("make {} or more", classes * kOneOf)};
  }
  return count;
}

bool is_for_validation(std::int64_t number, std::int64_t classes) { return number / classes % kOneOf == kOneOf - 1; }

Result<Done> make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Error{Fault::data, fmt::format("{}: {}", path, error.message()), {}};
  return Done{};
}

}  // namespace

Result<Done> make_photos(const MakeDataOptions& options, Console console) {
  constexpr std::int64_t kClasses = kPatterns.size();
  const auto count = picture_count(options, 800, kClasses);
  if (!count) return count.error();
  for (const char* split : {"train", "val"}) {
    for (const Pattern& pattern : kPatterns) {
      if (auto made = make_folder(fmt::format("{}/{}/{}", options.folder, split, pattern.name)); !made) return made;
    }
  }
  for (std::int64_t i = 0; i < *count; ++i) {
    const auto label = static_cast<std::size_t>(i % kClasses);
    Random random(options.seed, static_cast<std::uint64_t>(i));
    const Canvas canvas = paint_photo(label, random);
    const std::string path = fmt::format("{}/{}/{}/{:06}.JPEG", options.folder,
                                         is_for_validation(i, kClasses) ? "val" : "train", kPatterns[label].name, i);
    if (auto done = write_jpeg(path, canvas.size, canvas.channels, canvas.values); !done) return done;
  }
  console.out << fmt::format("{}: {} made pictures of {} classes in train/ and val/\n", options.folder, *count,
                             kClasses);
  return Done{};
}

Result<Done> make_xrays(const MakeDataOptions& options, Console console) {
  constexpr std::int64_t kClasses = 2;
  constexpr std::int64_t kOnePngOf = 4;
  const auto count = picture_count(options, 200, kClasses);
  if (!count) return count.error();
  if (auto made = make_folder(options.folder + "/imgs"); !made) return made;
  std::string lists[] = {"image,label\n", "image,label\n"};
  for (std::int64_t i = 0; i < *count; ++i) {
    const std::int64_t label = i % kClasses;
    Random random(options.seed, static_cast<std::uint64_t>(i));
    const Canvas canvas = paint_xray(static_cast<std::size_t>(label), random);
    const bool png = i / kClasses % kOnePngOf == kOnePngOf - 1;
    const std::string name = fmt::format("{:06}.{}", i, png ? "png" : "jpg");
    const std::string path = options.folder + "/imgs/" + name;
    const auto done = png ? write_png(path, canvas.size, canvas.channels, canvas.values)
                          : write_jpeg(path, canvas.size, canvas.channels, canvas.values);
    if (!done) return done;
    lists[is_for_validation(i, kClasses) ? 1 : 0] += name + (label == 1 ? ",positive\n" : ",negative\n");
  }
  const char* names[] = {"/train.csv", "/valid.csv"};
  for (int split = 0; split < 2; ++split) {
    std::ofstream file(options.folder + names[split], std::ios::binary | std::ios::trunc);
    file << lists[split];
    file.close();
    if (!file) {
      return Error{Fault::data, fmt::format("{}{}: could not be written", options.folder, names[split]),
                   "is the folder writable, the disk full?"};
    }
  }
  console.out << fmt::format("{}: {} made X-rays in imgs/, listed in train.csv and valid.csv\n", options.folder,
                             *count);
  return Done{};
}

}  // namespace ergometer::workload::vision
