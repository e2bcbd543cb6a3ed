// Times as other programs write them: Unix seconds to nanoseconds, ISO 8601, nvidia-smi's YYYY/MM/DD, and the orders of
// day and month of several countries. Used by the importers in this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ergometer::foreign {

enum class DateOrder { unknown, day_first, month_first };

// What one text tells: a moment, and whether its order of day and month is certain.
struct ForeignTime {
  std::int64_t unix_ns = 0;
  bool zone = false;       // it says its time zone; else it is taken as UTC
  bool relative = false;   // seconds since some beginning, not since 1970
  bool same_day_and_month = false;  // 1/1/2024, which tells no order
};

// "2024/01/31 13:45:12.345", "2024-01-31T13:45:12Z", "31.01.2024 13:45:12,345", "1/31/2024 1:45:12 PM", "1706708712.345".
// A point between the parts of a date means day first; otherwise `order` decides between 31/01 and 01/31, unless one
// of them is above 12. Unset for text that is none of these or no date of the calendar.
[[nodiscard]] std::optional<ForeignTime> parse_foreign_time(std::string_view text, DateOrder order);

// Which order a date tells by itself; unknown where it could be either or has no order to tell (year first, day and month
// alike, a bare number).
[[nodiscard]] DateOrder order_told_by(std::string_view text);

}  // namespace ergometer::foreign
