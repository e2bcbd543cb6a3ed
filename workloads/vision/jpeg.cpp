// JPEG with libjpeg-turbo's classic interface, which alone scales while it decodes and leaves out what is not needed.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
// After <cstdio>, which it needs and does not include.
#include <jpeglib.h>
// After <jpeglib.h>.
#include <jerror.h>

#include <algorithm>

#include "vision/decode.hpp"

namespace ergometer::workload::vision {
namespace {

struct ErrorState {
  jpeg_error_mgr manager;  // first: libjpeg hands out a pointer to it
  std::jmp_buf jump;
  char reason[JMSG_LENGTH_MAX];
  bool data_ended_early;
};

ErrorState& state_of(j_common_ptr info) { return *reinterpret_cast<ErrorState*>(info->err); }

[[noreturn]] void leave_decoder(j_common_ptr info) {
  ErrorState& state = state_of(info);
  info->err->format_message(info, state.reason);
  std::longjmp(state.jump, 1);
}

void note_warning(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_HIT_MARKER) state_of(info).data_ended_early = true;
}

void print_no_message(j_common_ptr) {}

// A decompressor over bytes that outlive it. `run` calls libjpeg: an error there ends it by longjmp, so that it must
// hold nothing that needs a destructor.
class Decompressor {
 public:
  explicit Decompressor(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {
    info.err = jpeg_std_error(&state_.manager);
    state_.manager.error_exit = leave_decoder;
    state_.manager.emit_message = note_warning;
    state_.manager.output_message = print_no_message;
    state_.reason[0] = '\0';
    state_.data_ended_early = false;
    created_ = run([this] { jpeg_create_decompress(&info); });
  }
  ~Decompressor() {
    if (created_) jpeg_destroy_decompress(&info);
  }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  template <class Work>
  bool run(Work work) {
    if (setjmp(state_.jump) != 0) return false;
    work();
    return true;
  }

  bool created() const { return created_; }
  Error error() const { return {Fault::data, state_.reason, {}}; }
  bool data_ended_early() const { return state_.data_ended_early; }

  // From the start of the file; also once more.
  bool read_header() {
    return run([this] {
      jpeg_abort_decompress(&info);
      jpeg_mem_src(&info, bytes_.data(), static_cast<unsigned long>(bytes_.size()));
      jpeg_read_header(&info, TRUE);
    });
  }

  // Whether an end marker follows the header. Within compressed data 0xFF is followed by 0 or a restart marker.
  bool has_end_marker() const {
    const std::uint8_t* begin = info.src->next_input_byte;
    const std::uint8_t* end = begin + info.src->bytes_in_buffer;
    for (const std::uint8_t* at = end - 1; at > begin; --at) {
      if (at[0] == JPEG_EOI && at[-1] == 0xFF) return true;
    }
    return false;
  }

  jpeg_decompress_struct info = {};

 private:
  const std::vector<std::uint8_t>& bytes_;
  ErrorState state_;
  bool created_ = false;
};

// Of a picture without an end marker: reads all of it, at the smallest scale.
Result<Done> check_complete(Decompressor& jpeg) {
  jpeg_decompress_struct& info = jpeg.info;
  const Error truncated{Fault::data, "the file is truncated", {}};
  if (info.progressive_mode || info.arith_code) return truncated;
  info.scale_num = 1;
  info.scale_denom = 8;
  if (!jpeg.run([&] { jpeg_start_decompress(&info); })) return jpeg.error();
  std::vector<std::uint8_t> row(static_cast<std::size_t>(info.output_width) *
                                static_cast<std::size_t>(info.output_components));
  std::uint8_t* rows[] = {row.data()};
  const bool read = jpeg.run([&] {
    while (info.output_scanline < info.output_height) jpeg_read_scanlines(&info, rows, 1);
  });
  if (!read) return jpeg.error();
  if (jpeg.data_ended_early()) return truncated;
  if (!jpeg.read_header()) return jpeg.error();
  return Done{};
}

// Eighths: the smallest scale at which the box still has at least the pixels of the target. Of 1/8 to 8/8 only the
// powers of two: for these libjpeg-turbo has vector code, and all pictures together take 5 % less time than with every
// eighth.
unsigned int smallest_scale(const Request& request) {
  for (const unsigned int eighths : {1U, 2U, 4U}) {
    const double scale = eighths / 8.0;
    if (request.box.width * scale >= request.target.width && request.box.height * scale >= request.target.height) {
      return eighths;
    }
  }
  return 8;
}

// Rows of inverted CMYK to RGB or luma, in place: an ink's share c of black's share k lets through (1 - c)(1 - k), and
// the stored values are 255 (1 - c) and 255 (1 - k).
void from_cmyk(int channels, Pixels& pixels) {
  const std::size_t count = pixels.values.size() / 4;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* from = pixels.values.data() + 4 * i;
    const unsigned int black = from[3];
    const unsigned int rgb[] = {(from[0] * black + 127) / 255, (from[1] * black + 127) / 255,
                                (from[2] * black + 127) / 255};
    std::uint8_t* to = pixels.values.data() + static_cast<std::size_t>(channels) * i;
    if (channels == 3) {
      for (int c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(rgb[c]);
    } else {
      to[0] = luma(rgb[0], rgb[1], rgb[2]);
    }
  }
  pixels.channels = channels;
  pixels.values.resize(count * static_cast<std::size_t>(channels));
}

// After jpeg_start_decompress: only the columns and rows of the region. The columns begin where a block does, so that
// the part may be wider than asked.
bool read_region(Decompressor& jpeg, const Request& request, double scale, Pixels& pixels) {
  jpeg_decompress_struct& info = jpeg.info;
  const Region region =
      needed_region(request, scale, {static_cast<int>(info.output_width), static_cast<int>(info.output_height)});
  auto left = static_cast<JDIMENSION>(region.left);
  auto width = static_cast<JDIMENSION>(region.right - region.left);
  const auto height = static_cast<std::size_t>(region.bottom - region.top);
  if (!jpeg.run([&] {
        jpeg_crop_scanline(&info, &left, &width);
        if (region.top > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(region.top));
      })) {
    return false;
  }
  const std::size_t stride = std::size_t{width} * static_cast<std::size_t>(info.output_components);
  pixels.size = {static_cast<int>(width), static_cast<int>(height)};
  pixels.channels = info.output_components;
  pixels.values.resize(stride * height);
  place(request, scale, static_cast<int>(left), region.top, pixels);
  std::uint8_t* row = pixels.values.data();
  std::uint8_t* const end = row + stride * height;
  return jpeg.run([&] {
    while (row < end) row += stride * jpeg_read_scanlines(&info, &row, 1);
  });
}

}  // namespace

Result<Done> decode_jpeg(const std::vector<std::uint8_t>& bytes, int channels, const Planner& planner, Pixels& pixels) {
  Decompressor jpeg(bytes);
  if (!jpeg.created() || !jpeg.read_header()) return jpeg.error();
  jpeg_decompress_struct& info = jpeg.info;
  if (auto fits = check_size(info.image_width, info.image_height); !fits) return fits;
  if (!jpeg.has_end_marker()) {
    if (auto complete = check_complete(jpeg); !complete) return complete;
  }
  const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  const Request request = planner({static_cast<int>(info.image_width), static_cast<int>(info.image_height)});
  info.scale_num = smallest_scale(request);
  info.scale_denom = 8;
  if (!jpeg.run([&] { jpeg_start_decompress(&info); })) return jpeg.error();
  if (!read_region(jpeg, request, info.scale_num / 8.0, pixels)) return jpeg.error();
  if (cmyk) from_cmyk(channels, pixels);
  return Done{};
}

}  // namespace ergometer::workload::vision
