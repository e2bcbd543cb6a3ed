// Pictures from files: JPEG (libjpeg-turbo) and PNG (libpng), told apart by their first bytes, not by their names. Only
// the part that is needed is decoded, JPEG at the smallest scale that suffices. Used by the data sets.
//
// As torchvision's default loader does: grey becomes three equal channels, CMYK and YCCK become RGB on the assumption
// that their values are inverted (Adobe's convention), transparency is dropped, an EXIF orientation is not applied,
// embedded colour profiles are ignored. 16-bit PNG is scaled to 8 bits.
//
// What counts as unreadable does not depend on which part is needed, so that a file has the same fate in every epoch:
//   - whatever libjpeg or libpng call an error (no picture, damaged header, lossless JPEG, ...);
//   - a JPEG without an end marker whose data is not all there. If only the marker is missing it is used; where that
//     cannot be known (progressive, arithmetic coding) it is not;
//   - more than kMostPixels pixels, an empty file.
// A JPEG whose data was overwritten but which ends properly is used as libjpeg repairs it, as in PIL: libjpeg only
// warns, and only when it decodes that part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "vision/picture.hpp"

namespace ergometer::workload::vision {

// PIL's limit against decompression bombs.
inline constexpr std::int64_t kMostPixels = 178'956'970;

// A whole file; the message of an error is the reason alone, without the path.
[[nodiscard]] Result<Done> read_file(const std::string& path, std::vector<std::uint8_t>& bytes);

// `channels` is 1 (grey, ITU-R 601 luma) or 3 (RGB). The message of an error is the reason alone. Called from several
// threads at once, each with its own `pixels`.
[[nodiscard]] Result<Done> decode(const std::vector<std::uint8_t>& bytes, int channels, const Planner& planner,
                                  Pixels& pixels);

// One format each.
[[nodiscard]] Result<Done> decode_jpeg(const std::vector<std::uint8_t>& bytes, int channels, const Planner& planner,
                                       Pixels& pixels);
[[nodiscard]] Result<Done> decode_png(const std::vector<std::uint8_t>& bytes, int channels, const Planner& planner,
                                      Pixels& pixels);

// An error if a picture of this size is empty or larger than kMostPixels.
[[nodiscard]] Result<Done> check_size(std::int64_t width, std::int64_t height);

}  // namespace ergometer::workload::vision
