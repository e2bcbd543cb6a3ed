#include "store/zstd_frames.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <memory>
#include <vector>

namespace ergometer {
namespace {

// Fast and, for texts of some kilobytes, about as small as the higher levels.
constexpr int kLevel = 1;
// A frame up to this size is decompressed at once; a larger one in pieces, whatever size it claims.
constexpr std::uint64_t kWhole = 4 << 20;
constexpr std::string_view kMagic("\x28\xB5\x2F\xFD", 4);

struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using Decompressor = std::unique_ptr<ZSTD_DCtx, FreeDecompressor>;

// Room for decompressed text. Not filled with zeros and not grown: only the pages that frames use are ever touched.
struct Buffer {
  std::unique_ptr<char[]> bytes = std::make_unique_for_overwrite<char[]>(kWhole);
  [[nodiscard]] char* data() const { return bytes.get(); }
  [[nodiscard]] std::size_t size() const { return kWhole; }
};

bool decompress_in_pieces(ZSTD_DCtx* context, std::string_view frame, const Buffer& buffer,
                          const FrameVisitor& visitor) {
  ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
  ZSTD_inBuffer in{frame.data(), frame.size(), 0};
  for (;;) {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    const std::size_t left = ZSTD_decompressStream(context, &out, &in);
    if (ZSTD_isError(left)) return false;
    if (out.pos > 0) visitor.text({buffer.data(), out.pos});
    if (left == 0) return true;
    if (in.pos == in.size && out.pos < out.size) return false;
  }
}

bool decompress(ZSTD_DCtx* context, std::string_view frame, const Buffer& buffer, const FrameVisitor& visitor) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size > kWhole) return decompress_in_pieces(context, frame, buffer, visitor);  // also unknown sizes
  const std::size_t n = ZSTD_decompressDCtx(context, buffer.data(), buffer.size(), frame.data(), frame.size());
  if (ZSTD_isError(n)) return false;
  visitor.text({buffer.data(), n});
  return true;
}

bool is_skippable(std::string_view at) {
  return at.size() >= 4 && (static_cast<unsigned char>(at[0]) & 0xF0) == 0x50 && at.substr(1, 3) == "\x2A\x4D\x18";
}

}  // namespace

struct FrameCompressor::State {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::vector<char> frame;
};

FrameCompressor::FrameCompressor() : state_(std::make_unique<State>()) {
  if (!state_->context) return;
  ZSTD_CCtx_setParameter(state_->context, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(state_->context, ZSTD_c_checksumFlag, 1);
}

FrameCompressor::~FrameCompressor() { ZSTD_freeCCtx(state_->context); }

Result<std::string_view> FrameCompressor::compress(std::string_view text) {
  if (!state_->context) return fail(ErrorCode::io, "no memory for the compressor");
  state_->frame.resize(ZSTD_compressBound(text.size()));
  const std::size_t n =
      ZSTD_compress2(state_->context, state_->frame.data(), state_->frame.size(), text.data(), text.size());
  if (ZSTD_isError(n)) return fail(ErrorCode::internal, fmt::format("zstd: {}", ZSTD_getErrorName(n)));
  return std::string_view(state_->frame.data(), n);
}

void read_frames(std::string_view file, const FrameVisitor& visitor) {
  const Decompressor context(ZSTD_createDCtx());
  const Buffer buffer;
  std::size_t at = 0;
  while (at < file.size()) {
    const std::string_view rest = file.substr(at);
    const std::size_t size = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
    const bool complete = !ZSTD_isError(size);
    if (complete && is_skippable(rest)) {
      at += size;
      continue;
    }
    if (complete && context && decompress(context.get(), rest.substr(0, size), buffer, visitor)) {
      visitor.good();
      at += size;
      continue;
    }
    // The size of a damaged frame may itself be wrong, so the next magic is looked for from its start.
    const std::size_t next = file.find(kMagic, at + 1);
    const std::size_t end = next == std::string_view::npos ? file.size() : next;
    visitor.bad(at, end - at, !complete && end == file.size() && rest.starts_with(kMagic.substr(0, rest.size())));
    at = end;
  }
}

std::string last_frame_text(std::string_view file) {
  constexpr std::size_t kTail = 65536;
  constexpr int kTries = 16;  // each passes over one damaged frame
  const Decompressor context(ZSTD_createDCtx());
  if (!context) return {};
  const Buffer buffer;
  std::string text;
  FrameVisitor keep;
  keep.text = [&](std::string_view piece) {
    text += piece;
    if (text.size() > 2 * kTail) text.erase(0, text.size() - kTail);
  };
  std::size_t before = file.size();
  for (int i = 0; i < kTries && before > 0; ++i) {
    const std::size_t at = file.rfind(kMagic, before - 1);
    if (at == std::string_view::npos) break;
    const std::string_view rest = file.substr(at);
    const std::size_t size = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
    text.clear();
    if (!ZSTD_isError(size) && decompress(context.get(), rest.substr(0, size), buffer, keep)) return text;
    before = at;
  }
  return {};
}

}  // namespace ergometer
