#include "vision/decode.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
// After <cstdio>, which it needs and does not include.
#include <jpeglib.h>

#include "core/csv.hpp"
#include "vision/augment.hpp"
#include "vision/resample.hpp"
#include "workloads/vision/support.hpp"

namespace ergometer::workload::vision {
namespace {

// The picture as it is: the box is all of it and the target so large that no scaled decoding suffices.
Request unscaled(Size size) {
  Request request = whole_picture(size, 1);
  request.target = size;
  return request;
}

struct Outcome {
  std::string reason;  // empty: decoded
  Pixels pixels;
};

Outcome decode_file(const std::string& path, int channels = 3, const Planner& planner = unscaled) {
  Outcome outcome;
  std::vector<std::uint8_t> bytes;
  auto done = read_file(path, bytes);
  if (done) done = decode(bytes, channels, planner, outcome.pixels);
  if (!done) outcome.reason = done.error().message;
  return outcome;
}

std::vector<std::uint8_t> at_size(const Pixels& pixels, Size target) {
  ResampleScratch scratch;
  std::vector<std::uint8_t> output(static_cast<std::size_t>(target.width * target.height * pixels.channels));
  resample(pixels, target, false, scratch, output.data());
  return output;
}

double mean_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  if (a.size() != b.size() || a.empty()) return 1e9;
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<int>(a[i]) - static_cast<int>(b[i]));
  return sum / static_cast<double>(a.size());
}

using Colour = std::vector<std::uint8_t>;

// An 8x8 JPEG of one colour in `given` components, stored as `stored`.
std::vector<std::uint8_t> plain_jpeg(const Colour& colour, J_COLOR_SPACE given, J_COLOR_SPACE stored) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = info.image_height = 8;
  info.input_components = static_cast<int>(colour.size());
  info.in_color_space = given;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, stored);
  jpeg_start_compress(&info, TRUE);
  std::vector<std::uint8_t> row;
  for (int x = 0; x < 8; ++x) row.insert(row.end(), colour.begin(), colour.end());
  JSAMPROW rows[] = {row.data()};
  while (info.next_scanline < 8) jpeg_write_scanlines(&info, rows, 1);
  jpeg_finish_compress(&info);
  std::vector<std::uint8_t> bytes(memory, memory + size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return bytes;
}

TEST(FaultCases, F142CmykYcckAndGreyAreRgb) {
  const Colour inverted_red = {255, 0, 0, 255};  // no cyan, all magenta and yellow, no black, as Adobe stores it
  const std::map<std::string, std::vector<std::uint8_t>> reds = {
      {"RGB in YCbCr", plain_jpeg({250, 10, 10}, JCS_RGB, JCS_YCbCr)},
      {"RGB", plain_jpeg({250, 10, 10}, JCS_RGB, JCS_RGB)},
      {"CMYK", plain_jpeg(inverted_red, JCS_CMYK, JCS_CMYK)},
      {"YCCK", plain_jpeg(inverted_red, JCS_CMYK, JCS_YCCK)}};
  for (const auto& [name, bytes] : reds) {
    SCOPED_TRACE(name);
    Pixels pixels;
    ASSERT_TRUE(decode(bytes, 3, unscaled, pixels));
    ASSERT_EQ(pixels.values.size(), 8U * 8U * 3U);
    EXPECT_GT(pixels.values[0], 200);
    EXPECT_LT(pixels.values[1], 60);
    EXPECT_LT(pixels.values[2], 60);
    ASSERT_TRUE(decode(bytes, 1, unscaled, pixels));
    ASSERT_EQ(pixels.values.size(), 8U * 8U);
    EXPECT_NEAR(pixels.values[63], 78, 6);  // 0.299 of red
  }
  Pixels grey;
  ASSERT_TRUE(decode(plain_jpeg({128}, JCS_GRAYSCALE, JCS_GRAYSCALE), 3, unscaled, grey));
  ASSERT_EQ(grey.values.size(), 8U * 8U * 3U);
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(grey.values[static_cast<std::size_t>(c)], 128, 3);
  // Black ink dims: half of black over white paper.
  Pixels dim;
  ASSERT_TRUE(decode(plain_jpeg({255, 255, 255, 100}, JCS_CMYK, JCS_CMYK), 3, unscaled, dim));
  EXPECT_NEAR(dim.values[0], 100, 2);
}

TEST(Decode, BadBytesAreErrorsWithAReason) {
  Pixels pixels;
  const auto reason = [&](const std::vector<std::uint8_t>& bytes) {
    const auto done = decode(bytes, 3, unscaled, pixels);
    return done ? "no error" : done.error().message;
  };
  EXPECT_EQ(reason({}), "the file is empty");
  EXPECT_EQ(reason({'G', 'I', 'F'}), "neither a JPEG nor a PNG picture");
  EXPECT_EQ(reason({0xFF, 0xD8, 0xFF, 0xD9}), "JPEG datastream contains no image");
  // A frame of 65500x65500 is refused before any memory is taken for it.
  auto bytes = plain_jpeg({128}, JCS_GRAYSCALE, JCS_GRAYSCALE);
  for (std::size_t i = 0; i + 9 < bytes.size(); ++i) {
    if (bytes[i] == 0xFF && bytes[i + 1] == 0xC0) {
      bytes[i + 5] = bytes[i + 7] = 0xFF;
      bytes[i + 6] = bytes[i + 8] = 0xDC;
    }
  }
  EXPECT_EQ(reason(bytes), "65500x65500 pixels are more than the limit of 178956970");
  const auto missing = decode_file("/nonexistent/picture.JPEG");
  EXPECT_EQ(missing.reason, "No such file or directory");
}

TEST(Decode, EveryCutIsSeenWhateverPartIsNeeded) {
  test::TempDir folder;
  write_picture(folder, "a.JPEG", {200, 160});
  write_picture(folder, "a.png", {64, 64});
  std::vector<std::uint8_t> bytes;
  ASSERT_TRUE(read_file((folder / "a.JPEG").string(), bytes));
  Pixels pixels;
  const auto top = [](Size) { return Request{{0, 0, 32, 32}, {0, 0, 32, 32}, {32, 32}}; };
  ASSERT_TRUE(decode(bytes, 3, top, pixels));
  for (const std::size_t percent : {1U, 10U, 40U, 60U, 80U, 95U}) {
    const std::vector<std::uint8_t> cut(bytes.begin(),
                                        bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() * percent / 100));
    EXPECT_FALSE(decode(cut, 3, top, pixels)) << percent;
  }
  const std::vector<std::uint8_t> no_end(bytes.begin(), bytes.end() - 2);
  EXPECT_TRUE(decode(no_end, 3, top, pixels));  // all pixels are there
  bytes.insert(bytes.end(), 500, 0x55);
  EXPECT_TRUE(decode(bytes, 3, top, pixels));
  ASSERT_TRUE(read_file((folder / "a.png").string(), bytes));
  ASSERT_TRUE(decode(bytes, 3, top, pixels));
  bytes.resize(bytes.size() / 2);
  const auto png = decode(bytes, 3, top, pixels);
  ASSERT_FALSE(png);
  EXPECT_EQ(png.error().message, "the file is truncated");
}

TEST(Decode, APartEqualsThatPartOfTheWhole) {
  test::TempDir folder;
  write_picture(folder, "a.JPEG", {301, 203});
  const auto whole = decode_file((folder / "a.JPEG").string());
  ASSERT_EQ(whole.reason, "");
  for (const Box box : {Box{0, 0, 301, 203}, Box{100, 60, 57, 81}, Box{16, 16, 16, 16}, Box{290, 190, 11, 13}}) {
    const Size target{static_cast<int>(box.width), static_cast<int>(box.height)};
    const auto part = decode_file((folder / "a.JPEG").string(), 3, [&](Size) { return Request{box, box, target}; });
    ASSERT_EQ(part.reason, "");
    EXPECT_LE(part.pixels.size.width, target.width + 2 + 16 + 16);
    EXPECT_LE(part.pixels.size.height, target.height + 2);
    Pixels expected = whole.pixels;
    expected.box = expected.limits = box;
    EXPECT_EQ(at_size(part.pixels, target), at_size(expected, target)) << box.left << ' ' << box.top;
  }
}

TEST(Decode, ScaledDecodingIsCloseToDecodingAllAndResizing) {
  test::TempDir folder;
  write_picture(folder, "a.JPEG", {640, 480});
  const auto whole = decode_file((folder / "a.JPEG").string());
  for (const int side : {50, 64, 100, 224, 300}) {
    const auto part = decode_file((folder / "a.JPEG").string(), 3, [&](Size size) { return centre_crop(size, side); });
    ASSERT_EQ(part.reason, "");
    Pixels expected = whole.pixels;
    place(centre_crop({640, 480}, side), 1, 0, 0, expected);
    EXPECT_LT(mean_difference(at_size(part.pixels, {side, side}), at_size(expected, {side, side})), 0.6) << side;
    // No more pixels are decoded than two to eight times what is asked.
    EXPECT_LE(part.pixels.size.width, side * 2 + 40) << side;
  }
}

class RealPictures : public testing::Test {
 protected:
  void SetUp() override {
    const auto shared = test::shared_dir();
    if (shared.empty()) GTEST_SKIP() << "the folder of data samples is absent";
    folder_ = shared.string() + "/data/imagenet";
  }

  // Rows of the manifest: path, width, height, whether PIL decodes it.
  struct Row {
    std::string path;
    std::string size;
    bool pil_decodes = false;
  };
  std::vector<Row> manifest() const {
    std::vector<Row> rows;
    auto csv = CsvReader::open(folder_ + "/manifest.csv");
    if (!csv) return rows;
    std::vector<std::string_view> fields;
    for (auto more = csv->next(fields); more && *more; more = csv->next(fields)) {
      if (csv->line() > 1) {
        rows.push_back({std::string(fields[0]), fmt::format("{}x{}", fields[3], fields[4]), fields[7] == "yes"});
      }
    }
    return rows;
  }

  std::string folder_;
};

TEST_F(RealPictures, DecodeAsTheManifestSays) {
  const std::map<std::string, std::string> reasons = {
      {"odd/truncated_large.JPEG", "the file is truncated"},
      {"odd/truncated.JPEG", "the file is truncated"},
      {"odd/truncated_header.JPEG", "Invalid JPEG file structure: missing SOS marker"},
      {"odd/empty.JPEG", "the file is empty"},
      {"odd/text.JPEG", "neither a JPEG nor a PNG picture"},
      {"odd/lossless_sof3.JPEG", "Unsupported JPEG process: SOF type 0xc3"}};
  const auto rows = manifest();
  EXPECT_EQ(rows.size(), 58U + 31U);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.path);
    Size seen;
    const auto outcome = decode_file(folder_ + "/" + row.path, 3, [&](Size size) {
      seen = size;
      return centre_crop(size, 64);
    });
    const auto expected = reasons.find(row.path);
    EXPECT_EQ(outcome.reason, expected == reasons.end() ? "" : expected->second);
    // PIL refuses one more: the file that lacks nothing but the end marker.
    EXPECT_EQ(outcome.reason.empty(), row.pil_decodes || row.path == "odd/missing_eoi.JPEG");
    if (!outcome.reason.empty()) continue;
    EXPECT_EQ(fmt::format("{}x{}", seen.width, seen.height), row.size);
    EXPECT_EQ(outcome.pixels.channels, 3);
  }
}

TEST_F(RealPictures, OneSceneInManyCodingsLooksTheSame) {
  const Size target{100, 66};
  const auto scene = [&](const std::string& name) {
    const auto outcome = decode_file(folder_ + "/odd/" + name, 3, unscaled);
    EXPECT_EQ(outcome.reason, "") << name;
    return outcome.reason.empty() ? at_size(outcome.pixels, target) : std::vector<std::uint8_t>();
  };
  const auto expected = scene("png_as_jpeg.JPEG");
  for (const char* name : {"cmyk.JPEG", "ycck.JPEG", "rgb_adobe0.JPEG", "png_rgba_as_jpeg.JPEG",
                           "png_palette_as_jpeg.JPEG", "missing_eoi.JPEG", "garbage_after_eoi.JPEG", "progressive.JPEG",
                           "arithmetic.JPEG", "restart.JPEG", "sub411.JPEG", "sub440.JPEG"}) {
    EXPECT_LT(mean_difference(scene(name), expected), 8) << name;
  }
  EXPECT_GT(mean_difference(scene("corrupt_scan.JPEG"), expected), 1);
  std::vector<std::uint8_t> other = expected;
  std::reverse(other.begin(), other.end());
  EXPECT_GT(mean_difference(other, expected), 30);  // what a wrong picture would give
}

TEST_F(RealPictures, PartsAndScalesAgreeWithTheWhole) {
  for (const Row& row : manifest()) {
    const bool large = row.size.size() == std::string("2048x1536").size();  // for the sake of time
    if (!row.pil_decodes || large || row.path == "odd/corrupt_scan.JPEG") continue;
    SCOPED_TRACE(row.path);
    const auto whole = decode_file(folder_ + "/" + row.path);
    ASSERT_EQ(whole.reason, "");
    Random random(5, 0);
    for (int i = 0; i < 2; ++i) {
      std::optional<Request> request;
      const auto part = decode_file(folder_ + "/" + row.path, 3, [&](Size size) {
        request = random_resized_crop(size, 96, random);
        return *request;
      });
      Pixels expected = whole.pixels;
      place(*request, 1, 0, 0, expected);
      const double difference = mean_difference(at_size(part.pixels, {96, 96}), at_size(expected, {96, 96}));
      // The worst are leaves at 1/8: libjpeg averages squares, which the triangle filter then widens.
      EXPECT_LT(difference, 8) << fmt::format("{} {} {} {}", request->box.left, request->box.top, request->box.width,
                                              request->box.height);
    }
  }
}

TEST_F(RealPictures, ExifOrientationIsNotApplied) {
  const auto outcome = decode_file(folder_ + "/odd/exif_orientation_6.JPEG");
  EXPECT_EQ(outcome.pixels.size.width, 450);
  EXPECT_EQ(outcome.pixels.size.height, 600);
}

TEST_F(RealPictures, SixteenBitsAndEightAreTheSameXray) {
  const auto xrays = test::shared_dir().string() + "/data/xray/imgs/";
  const auto half = [](Size size) { return whole_picture(size, 128); };
  const auto wide = decode_file(xrays + "a10.png", 1, half);
  const auto eight = decode_file(xrays + "a09.png", 1, half);
  ASSERT_EQ(wide.reason + eight.reason, "");
  EXPECT_LT(mean_difference(at_size(wide.pixels, {128, 128}), at_size(eight.pixels, {128, 128})), 2);
}

}  // namespace
}  // namespace ergometer::workload::vision
