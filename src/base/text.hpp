// Small text helpers without locale: trim, split, nearest known name for "did you mean".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ergometer {

[[nodiscard]] std::string_view trim(std::string_view text);
// Parts between separators; empty parts are kept. "" gives one empty part.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
// Lower case of ASCII letters; other bytes unchanged.
[[nodiscard]] std::string lower(std::string_view text);
// Letters to change, add, drop or swap with their neighbour to make one of the other.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);
// The known name with the smallest edit distance, or "" if none is closer than half of its length.
[[nodiscard]] std::string nearest_name(std::string_view name, std::span<const std::string> known);
// `name` made safe as a file name: [A-Za-z0-9._-] kept, everything else '_'; never empty, "." or "..".
[[nodiscard]] std::string file_name_of(std::string_view name);

}  // namespace ergometer
