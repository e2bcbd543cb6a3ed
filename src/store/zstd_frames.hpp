// Independent zstd frames with checksums: how sample files are written and how a damaged file is read past its damage.
// Used by RunWriter and by the sample reader.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ergometer {

// Compresses texts into frames with one reused context. Not for several threads at once.
class FrameCompressor {
 public:
  FrameCompressor();
  ~FrameCompressor();
  FrameCompressor(const FrameCompressor&) = delete;
  FrameCompressor& operator=(const FrameCompressor&) = delete;
  // The frame stays valid until the next call. Error: zstd's own, or no memory.
  [[nodiscard]] Result<std::string_view> compress(std::string_view text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What read_frames tells its caller, in file order.
struct FrameVisitor {
  // A part of the current frame's text; not yet known to be good.
  std::function<void(std::string_view text)> text;
  // The frame ended and its checksum (if it has one) holds.
  std::function<void()> good;
  // The frame at `offset` is damaged, or cut off by the end of the file: what text() gave since the last good() is not
  // to be trusted. `bytes`: how much of the file is skipped up to the next frame.
  std::function<void(std::uint64_t offset, std::uint64_t bytes, bool cut_off)> bad;
};

// Reads all frames of `file`, a whole .zst file. After damage it goes on at the next frame magic (0xFD2FB528).
void read_frames(std::string_view file, const FrameVisitor& visitor);

// Text of the last good frame, up to its last 64 KiB; "" if there is none. Decompresses no other frame.
[[nodiscard]] std::string last_frame_text(std::string_view file);

}  // namespace ergometer
