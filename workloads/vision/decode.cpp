#include "vision/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace ergometer::workload::vision {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 29;

bool begins_with(const std::vector<std::uint8_t>& bytes, std::initializer_list<std::uint8_t> mark) {
  return bytes.size() >= mark.size() && std::equal(mark.begin(), mark.end(), bytes.begin());
}

}  // namespace

Result<Done> read_file(const std::string& path, std::vector<std::uint8_t>& bytes) {
  constexpr std::size_t kPart = std::size_t{1} << 18;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return Error{Fault::data, std::generic_category().message(errno), {}};
  std::setvbuf(file.get(), nullptr, _IONBF, 0);  // read straight into `bytes`
  std::size_t size = 0;
  while (true) {
    bytes.resize(std::max(bytes.capacity(), size + kPart));
    const std::size_t got = std::fread(bytes.data() + size, 1, bytes.size() - size, file.get());
    size += got;
    if (size > kMostBytes) return Error{Fault::data, "the file is larger than 512 MiB", {}};
    if (size < bytes.size()) break;
  }
  if (std::ferror(file.get()) != 0) return Error{Fault::data, std::generic_category().message(errno), {}};
  bytes.resize(size);
  return Done{};
}

Result<Done> check_size(std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1) return Error{Fault::data, "the picture has no pixels", {}};
  if (width > kMostPixels / height) {
    return Error{
        Fault::data, fmt::format("{}x{} pixels are more than the limit of {}", width, height, kMostPixels), {}};
  }
  return Done{};
}

Result<Done> decode(const std::vector<std::uint8_t>& bytes, int channels, const Planner& planner, Pixels& pixels) {
  if (bytes.empty()) return Error{Fault::data, "the file is empty", {}};
  if (begins_with(bytes, {0xFF, 0xD8, 0xFF})) return decode_jpeg(bytes, channels, planner, pixels);
  if (begins_with(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'})) {
    return decode_png(bytes, channels, planner, pixels);
  }
  return Error{Fault::data, "neither a JPEG nor a PNG picture", {}};
}

}  // namespace ergometer::workload::vision
