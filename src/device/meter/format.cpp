#include "device/meter/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <vector>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer::meter {
namespace {

constexpr double kMostWatts = 1e5;  // of one node
constexpr double kFarthestNs = 9e18;

std::vector<std::string_view> fields_of(std::string_view line, char separator) {
  auto fields = split(line, separator);
  for (auto& field : fields) {
    field = trim(field);
    if (field.size() > 1 && field.front() == '"' && field.back() == '"')
      field = trim(field.substr(1, field.size() - 2));
  }
  return fields;
}

// Loggers that separate by semicolons may write a decimal comma.
std::optional<double> number(std::string_view field, char separator) {
  if (separator != ';') return parse_double(field);
  std::string text(field);
  if (std::ranges::count(text, ',') == 1 && text.find('.') == std::string::npos) std::ranges::replace(text, ',', '.');
  return parse_double(text);
}

char separator_of(std::string_view line) {
  for (const char c : {';', '\t'})
    if (line.find(c) != std::string_view::npos) return c;
  return ',';
}

// "W" of "power_w", "Power (W)", "power[mW]", "W"; "" if the name tells none. The case counts: mW is no MW.
std::string_view unit_in(std::string_view name) {
  if (name.ends_with(')') || name.ends_with(']')) {
    const auto open = name.find_last_of("([");
    return open == std::string_view::npos ? std::string_view{} : trim(name.substr(open + 1, name.size() - open - 2));
  }
  const auto cut = name.find_last_of("_ ");
  return cut == std::string_view::npos ? name : name.substr(cut + 1);
}

std::optional<double> unit_of_name(std::string_view name) {
  const auto unit = unit_in(name);
  const auto word = lower(unit);
  if (word == "watts" || word == "watt") return 1.0;
  if (unit == "w" || unit == "mw" || unit == "kw") return watts_per(unit == "w" ? "W" : unit == "mw" ? "mW" : "kW");
  return watts_per(unit);
}

struct TimeColumn {
  Time time;
  double unit_ns;
};

std::optional<TimeColumn> time_of_name(std::string_view name) {
  const auto word = lower(name);
  const auto has = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  const bool monotonic = has("mono") || word == "t_ns";
  if (!monotonic && !has("time") && !has("date") && !has("epoch") && !has("unix") && word != "t" &&
      !word.starts_with("t_"))
    return std::nullopt;
  TimeColumn out{monotonic ? Time::monotonic : Time::wall, monotonic ? 1e9 : 0};
  for (const auto& [suffix, ns] :
       std::array<std::pair<std::string_view, double>, 4>{{{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}}) {
    const auto unit = unit_in(word);
    if (unit == suffix && unit != word) out.unit_ns = ns;
  }
  return out;
}

std::optional<std::int64_t> to_ns(double value, double unit_ns) {
  // The size of a number since 1970 tells its unit: 1.7e9 s, 1.7e12 ms, 1.7e15 us, 1.7e18 ns.
  if (unit_ns == 0) unit_ns = value < 1e11 ? 1e9 : value < 1e14 ? 1e6 : value < 1e17 ? 1e3 : 1;
  const double ns = value * unit_ns;
  if (!(ns > 0 && ns < kFarthestNs)) return std::nullopt;
  return static_cast<std::int64_t>(ns);
}

std::optional<std::int64_t> time_in(std::string_view field, const Format& format) {
  if (format.time == Time::wall && field.find_first_of("-:", 1) != std::string_view::npos && field.size() > 9)
    return parse_iso_time(field);
  // A whole number keeps its last digit: a double would lose hundreds of nanoseconds.
  if (const auto whole = parse_int(field); whole && format.time_unit_ns == 1) return *whole > 0 ? whole : std::nullopt;
  const auto value = number(field, format.separator);
  return value ? to_ns(*value, format.time_unit_ns) : std::nullopt;
}

std::optional<double> believable(std::optional<double> watts) {
  return watts && *watts > 0 && *watts <= kMostWatts ? watts : std::nullopt;
}

Result<Format> without_header(const std::vector<std::string_view>& fields, Format format) {
  format.has_header = false;
  if (fields.size() > 2)
    return fail(ErrorCode::invalid_argument, fmt::format("{} columns without a header", fields.size()),
                "give the file a first line with names: time_s,power_w");
  if (fields.size() == 2) {
    format.time = Time::wall;
    format.power_column = 1;
  }
  return format;
}

Result<Format> with_header(const std::vector<std::string_view>& fields, const Wishes& wishes, Format format,
                           std::optional<double>& unit) {
  std::optional<std::size_t> power;
  bool timed = false;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto time = time_of_name(fields[i]);
    if (time && !timed) {
      timed = true;
      format.time = time->time;
      format.time_unit_ns = time->unit_ns;
      format.time_column = i;
    }
    const auto word = lower(fields[i]);
    const bool named = wishes.column.empty()
                           ? !time && (word.find("power") != std::string::npos ||
                                       word.find("watt") != std::string::npos || unit_of_name(fields[i]))
                           : fields[i] == wishes.column;
    if (named && !power) power = i;
  }
  if (!power)
    return fail(ErrorCode::invalid_argument,
                wishes.column.empty() ? "no column of the header is a power"
                                      : fmt::format("the header has no column \"{}\"", wishes.column),
                "name it with [meter] column = \"...\" in ergometer.toml, or power_w in the header");
  format.power_column = *power;
  unit = unit_of_name(fields[*power]);
  return format;
}

}  // namespace

std::optional<double> watts_per(std::string_view unit) {
  if (unit == "W") return 1.0;
  if (unit == "mW") return 1e-3;
  if (unit == "kW") return 1e3;
  return std::nullopt;
}

Result<Format> format_of(std::string_view first_line, const Wishes& wishes) {
  if (first_line.starts_with("\xEF\xBB\xBF")) first_line.remove_prefix(3);
  Format format;
  format.separator = separator_of(first_line);
  const auto fields = fields_of(first_line, format.separator);
  const bool numbers = number(fields.back(), format.separator).has_value();
  std::optional<double> unit;
  auto found = numbers ? without_header(fields, format) : with_header(fields, wishes, format, unit);
  if (!found) return found;
  const auto wished = watts_per(wishes.unit);
  if (!wishes.unit.empty() && !wished)
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no unit of a meter", wishes.unit),
                "it is one of W, mW, kW");
  if (unit && wished && *unit != *wished)
    return fail(ErrorCode::invalid_argument,
                fmt::format("the column \"{}\" says another unit than the setting \"{}\"", fields[found->power_column],
                            wishes.unit),
                "correct or remove [meter] unit in ergometer.toml");
  if (!unit && !wished)
    return fail(ErrorCode::invalid_argument, "the unit of the power is not known",
                "set [meter] unit = \"W\" in ergometer.toml, or write the unit into the header: power_w");
  found->to_watts = unit.value_or(wished.value_or(1));
  if (wishes.time == "arrival") found->time = Time::arrival;
  if (wishes.time == "wall" && found->time != Time::arrival) found->time = Time::wall;
  if (wishes.time == "monotonic" && found->time != Time::arrival) {
    found->time = Time::monotonic;
    if (found->time_unit_ns == 0) found->time_unit_ns = 1e9;
  }
  return found;
}

std::optional<Line> parse_line(std::string_view line, const Format& format) {
  const auto fields = fields_of(line, format.separator);
  if (fields.size() <= std::max(format.power_column, format.time_column)) return std::nullopt;
  Line out;
  if (format.time != Time::arrival) {
    out.stamp_ns = time_in(fields[format.time_column], format);
    if (!out.stamp_ns) return std::nullopt;
  }
  const auto value = number(fields[format.power_column], format.separator);
  out.power_w = believable(value ? std::optional(*value * format.to_watts) : std::nullopt);
  return out;
}

std::optional<std::int64_t> parse_iso_time(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != ' ') || text[13] != ':' ||
      text[16] != ':')
    return std::nullopt;
  const auto part = [&](std::size_t at, std::size_t length, int least, int most) -> std::optional<int> {
    const auto value = parse_uint(text.substr(at, length));
    if (!value || *value < static_cast<std::uint64_t>(least) || *value > static_cast<std::uint64_t>(most))
      return std::nullopt;
    return static_cast<int>(*value);
  };
  const auto year = part(0, 4, 1970, 2200), month = part(5, 2, 1, 12), day = part(8, 2, 1, 31),
             hour = part(11, 2, 0, 23), minute = part(14, 2, 0, 59), second = part(17, 2, 0, 60);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  std::size_t at = 19;
  double fraction = 0;
  if (at < text.size() && (text[at] == '.' || text[at] == ',')) {
    const auto end = std::min(text.find_first_not_of("0123456789", at + 1), text.size());
    const auto digits = parse_double("0." + std::string(text.substr(at + 1, end - at - 1)) + "0");
    if (!digits) return std::nullopt;
    fraction = *digits;
    at = end;
  }
  std::tm tm{};
  tm.tm_year = *year - 1900;
  tm.tm_mon = *month - 1;
  tm.tm_mday = *day;
  tm.tm_hour = *hour;
  tm.tm_min = *minute;
  tm.tm_sec = *second;
  tm.tm_isdst = -1;
  const auto zone = trim(text.substr(at));
  std::int64_t s = 0;
  if (zone.empty()) {
    s = std::mktime(&tm);
  } else {
    s = ::timegm(&tm);
    if (zone != "Z" && zone != "z") {
      // +hh:mm, +hhmm, +hh
      std::string digits(zone.substr(1));
      std::erase(digits, ':');
      if (digits.size() == 2) digits += "00";
      const auto value = parse_uint(digits);
      if ((zone[0] != '+' && zone[0] != '-') || digits.size() != 4 || !value) return std::nullopt;
      const auto offset = static_cast<std::int64_t>(*value / 100 * 3600 + *value % 100 * 60);
      s -= zone[0] == '+' ? offset : -offset;
    }
  }
  return s * 1'000'000'000 + static_cast<std::int64_t>(fraction * 1e9);
}

std::optional<double> parse_watts(std::string_view line, double to_watts) {
  line = trim(line);
  const auto cut = line.find_last_of("0123456789.");
  if (cut == std::string_view::npos) return std::nullopt;
  const auto unit = trim(line.substr(cut + 1));
  if (!unit.empty()) {
    const auto named = watts_per(unit);
    if (!named) return std::nullopt;
    to_watts = *named;
  }
  const auto value = parse_double(line.substr(0, cut + 1));
  return believable(value ? std::optional(*value * to_watts) : std::nullopt);
}

}  // namespace ergometer::meter
