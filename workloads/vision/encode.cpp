#include "vision/encode.hpp"

#include <fmt/format.h>
#include <png.h>

#include <cerrno>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <system_error>
// After <cstdio>, which it needs and does not include.
#include <jpeglib.h>

namespace ergometer::workload::vision {
namespace {

constexpr int kQuality = 90;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Error cannot_write(const std::string& path) {
  return {Fault::data, fmt::format("{}: {}", path, std::generic_category().message(errno)),
          "is the folder writable, the disk full?"};
}

struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg hands out a pointer to it
  std::jmp_buf jump;
};

[[noreturn]] void leave_jpeg(j_common_ptr info) { std::longjmp(reinterpret_cast<JpegErrors*>(info->err)->jump, 1); }

// False if libjpeg gives up: it could not write, as far as pixels in memory are concerned.
bool compress(jpeg_compress_struct& info, JpegErrors& errors, std::FILE* file, Size size, int channels,
              const std::uint8_t* row) {
  if (setjmp(errors.jump) != 0) return false;
  jpeg_create_compress(&info);
  jpeg_stdio_dest(&info, file);
  info.image_width = static_cast<JDIMENSION>(size.width);
  info.image_height = static_cast<JDIMENSION>(size.height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kQuality, TRUE);
  jpeg_start_compress(&info, TRUE);
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(size.width) * channels;
  while (info.next_scanline < info.image_height) {
    auto* from = const_cast<std::uint8_t*>(row + stride * static_cast<std::ptrdiff_t>(info.next_scanline));
    jpeg_write_scanlines(&info, &from, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

Result<Done> write_jpeg(const std::string& path, Size size, int channels, const std::vector<std::uint8_t>& values) {
  File file(std::fopen(path.c_str(), "wbe"), std::fclose);
  if (!file) return cannot_write(path);
  JpegErrors errors;
  jpeg_compress_struct info = {};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave_jpeg;
  const bool done = compress(info, errors, file.get(), size, channels, values.data());
  jpeg_destroy_compress(&info);
  if (!done || std::fclose(file.release()) != 0) return cannot_write(path);
  return Done{};
}

Result<Done> write_png(const std::string& path, Size size, int channels, const std::vector<std::uint8_t>& values) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(size.width);
  image.height = static_cast<png_uint_32>(size.height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  if (png_image_write_to_file(&image, path.c_str(), 0, values.data(), 0, nullptr) == 0) return cannot_write(path);
  return Done{};
}

}  // namespace ergometer::workload::vision
