#include "core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ergometer::workload {
namespace {

constexpr std::int64_t kDay = 86400;

// Days since 1970-01-01 in the proleptic Gregorian calendar (H. Hinnant, "chrono-Compatible Low-Level Date
// Algorithms").
std::int64_t days_from_civil(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

int days_in_month(std::int64_t year, int month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[month - 1];
}

// Takes exactly `digits` digits off the front of `text`.
std::optional<int> take(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool skip(std::string_view& text, char letter) {
  if (text.empty() || text.front() != letter) return false;
  text.remove_prefix(1);
  return true;
}

// "hh:mm" with a limit for the hours, in seconds.
std::optional<std::int64_t> take_clock(std::string_view& text, int hours) {
  const auto hour = take(text, 2);
  if (!hour || *hour > hours || !skip(text, ':')) return std::nullopt;
  const auto minute = take(text, 2);
  if (!minute || *minute > 59) return std::nullopt;
  return *hour * 3600 + *minute * 60;
}

// What follows the date: "", " hh:mm", "Thh:mm:ss.000Z", "... +01:00".
std::optional<std::int64_t> parse_time_of_day(std::string_view text) {
  if (text.empty()) return 0;
  if (!skip(text, 'T') && !skip(text, ' ')) return std::nullopt;
  auto time = take_clock(text, 23);
  if (!time) return std::nullopt;
  if (skip(text, ':')) {
    const auto second = take(text, 2);
    if (!second || *second > 59) return std::nullopt;
    *time += *second;
    if (skip(text, '.')) {
      if (text.empty() || text.front() != '0') return std::nullopt;
      while (skip(text, '0')) {
      }
    }
  }
  text = trim(text);
  if (skip(text, 'Z') || text.empty()) return text.empty() ? time : std::nullopt;
  const bool east = text.front() == '+';
  if (!east && text.front() != '-') return std::nullopt;
  text.remove_prefix(1);
  const auto offset = take_clock(text, 14);
  if (!offset || !text.empty()) return std::nullopt;
  return east ? *time - *offset : *time + *offset;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return result;
}

std::optional<double> parse_number(std::string_view text) {
  text = trim(text);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_time(std::string_view text) {
  text = trim(text);
  if (const auto seconds = parse_integer(text)) return seconds;
  const auto year = take(text, 4);
  if (!year || !skip(text, '-')) return std::nullopt;
  const auto month = take(text, 2);
  if (!month || *month < 1 || *month > 12 || !skip(text, '-')) return std::nullopt;
  const auto day = take(text, 2);
  if (!day || *day < 1 || *day > days_in_month(*year, *month)) return std::nullopt;
  const auto time = parse_time_of_day(text);
  if (!time) return std::nullopt;
  return days_from_civil(*year, *month, *day) * kDay + *time;
}

std::string format_time(std::int64_t seconds) {
  std::int64_t days = seconds / kDay;
  std::int64_t rest = seconds % kDay;
  if (rest < 0) {
    rest += kDay;
    --days;
  }
  // The inverse of days_from_civil, of the same source.
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const std::int64_t day_of_era = days - era * 146097;
  const std::int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted = (5 * day_of_year + 2) / 153;
  const std::int64_t day = day_of_year - (153 * shifted + 2) / 5 + 1;
  const std::int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", year, month, day, rest / 3600, rest / 60 % 60, rest % 60);
}

std::string short_number(double value) {
  return std::abs(value) < 99.95 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = static_cast<std::size_t>(-1);
  const std::string wanted = lower(name.substr(0, 200));
  for (const std::string& candidate : names) {
    const std::size_t distance = edit_distance(wanted, lower(candidate));
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace ergometer::workload
