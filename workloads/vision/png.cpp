// PNG with libpng.
#include <png.h>

#include <csetjmp>
#include <cstddef>
#include <cstring>

#include "vision/decode.hpp"

namespace ergometer::workload::vision {
namespace {

constexpr std::size_t kReasonLength = 200;

// The file's bytes and what went wrong; libpng holds a pointer to it.
struct Source {
  const std::uint8_t* at;
  std::size_t left;
  char reason[kReasonLength];
};

[[noreturn]] void leave_reader(png_structp png, png_const_charp text) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->reason, text, kReasonLength - 1);
  png_longjmp(png, 1);
}

void print_no_warning(png_structp, png_const_charp) {}

void take(png_structp png, png_bytep to, std::size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->left) png_error(png, "the file is truncated");
  std::memcpy(to, source->at, count);
  source->at += count;
  source->left -= count;
}

class Reader {
 public:
  explicit Reader(const std::vector<std::uint8_t>& bytes) : source_{bytes.data(), bytes.size(), {}} {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, leave_reader, print_no_warning);
    if (!png) return;
    info = png_create_info_struct(png);
    if (info) png_set_read_fn(png, &source_, take);
  }
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // `work` calls libpng: an error there ends it by longjmp, so that it must hold nothing that needs a destructor.
  template <class Work>
  bool run(Work work) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    work();
    return true;
  }
  Error error() const { return {Fault::data, source_.reason, {}}; }

  png_structp png = nullptr;
  png_infop info = nullptr;

 private:
  Source source_;
};

// To 8-bit grey or RGB, whichever the file holds, without transparency.
void normalise(png_structp png, png_infop info) {
  png_set_expand(png);  // palettes to RGB, grey of fewer bits to 8
  png_set_scale_16(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

// Grey to three equal channels, or RGB to luma.
void convert(int channels, std::vector<std::uint8_t>& wide, Pixels& pixels) {
  if (pixels.channels == channels) {
    pixels.values.swap(wide);
    return;
  }
  const std::size_t count = wide.size() / static_cast<std::size_t>(pixels.channels);
  pixels.values.resize(count * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < count; ++i) {
    if (channels == 3) {
      for (std::size_t c = 0; c < 3; ++c) pixels.values[3 * i + c] = wide[i];
    } else {
      pixels.values[i] = luma(wide[3 * i], wide[3 * i + 1], wide[3 * i + 2]);
    }
  }
  pixels.channels = channels;
}

}  // namespace

Result<Done> decode_png(const std::vector<std::uint8_t>& bytes, int channels, const Planner& planner, Pixels& pixels) {
  Reader reader(bytes);
  if (!reader.png || !reader.info) return Error{Fault::data, "libpng: out of memory", {}};
  if (!reader.run([&] { png_read_info(reader.png, reader.info); })) return reader.error();
  const Size size{static_cast<int>(png_get_image_width(reader.png, reader.info)),
                  static_cast<int>(png_get_image_height(reader.png, reader.info))};
  if (auto fits = check_size(size.width, size.height); !fits) return fits;
  if (!reader.run([&] { normalise(reader.png, reader.info); })) return reader.error();
  const std::size_t stride = png_get_rowbytes(reader.png, reader.info);
  std::vector<std::uint8_t> values(stride * static_cast<std::size_t>(size.height));
  std::vector<std::uint8_t*> rows;
  for (std::size_t y = 0; y < static_cast<std::size_t>(size.height); ++y) rows.push_back(values.data() + y * stride);
  if (!reader.run([&] { png_read_image(reader.png, rows.data()); })) return reader.error();
  pixels.size = size;
  pixels.channels = png_get_channels(reader.png, reader.info);
  convert(channels, values, pixels);
  place(planner(size), 1, 0, 0, pixels);
  return Done{};
}

}  // namespace ergometer::workload::vision
