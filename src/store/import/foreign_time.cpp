#include "store/import/foreign_time.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer::foreign {
namespace {

// Reads a text from its front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  // 1 to `most` digits.
  std::optional<int> number(std::size_t most) {
    std::size_t n = 0;
    int value = 0;
    while (n < most && n < text_.size() && is_digit(text_[n])) value = 10 * value + (text_[n++] - '0');
    if (n == 0) return std::nullopt;
    digits_ = n;
    text_.remove_prefix(n);
    return value;
  }
  [[nodiscard]] std::size_t digits() const { return digits_; }  // of the last number
  // The next character if it is one of `set`, else 0.
  char one_of(std::string_view set) {
    if (text_.empty() || set.find(text_.front()) == std::string_view::npos) return 0;
    const char c = text_.front();
    text_.remove_prefix(1);
    return c;
  }
  void blanks() {
    while (one_of(" \t")) continue;
  }
  // A fraction's digits after a point or comma, as nanoseconds; further ones are dropped.
  std::int64_t fraction_ns() {
    std::int64_t ns = 0, unit = 100'000'000;
    while (!text_.empty() && is_digit(text_.front())) {
      ns += unit * (text_.front() - '0');
      unit /= 10;
      text_.remove_prefix(1);
    }
    return ns;
  }
  [[nodiscard]] std::string_view rest() const { return text_; }
  bool word(std::string_view w) {
    if (lower(text_.substr(0, w.size())) != w) return false;
    text_.remove_prefix(w.size());
    return true;
  }

 private:
  std::string_view text_;
  std::size_t digits_ = 0;
};

constexpr std::int64_t kSecond = 1'000'000'000;

// A bare number. What it counts follows from its size: 1e8 s is 1973, 1e11 s is the year 5138.
std::optional<ForeignTime> bare_number(std::string_view text) {
  std::string number(text);
  std::replace(number.begin(), number.end(), ',', '.');
  const auto value = parse_double(number);
  if (!value || !(*value >= 0) || *value > 9e18) return std::nullopt;
  ForeignTime out;
  out.zone = true;
  double unit = 1e9;
  if (*value >= 1e17) unit = 1;
  else if (*value >= 1e14) unit = 1e3;
  else if (*value >= 1e11) unit = 1e6;
  else if (*value < 1e8) out.relative = true;
  if (unit == 1) {
    if (const auto whole = parse_int(number)) return out.unix_ns = *whole, out;
    return std::nullopt;
  }
  // The whole part and the fraction apart: a double holds a Unix time to 0.2 us only.
  const auto point = number.find('.');
  const auto whole = parse_int(number.substr(0, point));
  const auto fraction = point == std::string::npos ? std::optional(0.0) : parse_double("0" + number.substr(point));
  if (whole && fraction)
    out.unix_ns = *whole * static_cast<std::int64_t>(unit) + static_cast<std::int64_t>(std::llround(*fraction * unit));
  else
    out.unix_ns = static_cast<std::int64_t>(std::llround(*value * unit));
  return out;
}

// "+01:00", "-0500", "Z": minutes east of UTC.
std::optional<int> zone_minutes(Scanner& scan) {
  if (scan.word("utc") || scan.word("gmt") || scan.word("z")) return 0;
  const char sign = scan.one_of("+-");
  if (!sign) return std::nullopt;
  const auto hours = scan.number(2);
  scan.one_of(":");
  const auto minutes = scan.number(2);
  if (!hours) return std::nullopt;
  const int total = *hours * 60 + minutes.value_or(0);
  return sign == '-' ? -total : total;
}

struct Date {
  int year = 0, month = 0, day = 0;
  bool same = false;  // day and month, and either could be first
};

std::optional<Date> scan_date(Scanner& scan, DateOrder order) {
  const auto a = scan.number(4);
  if (!a) return std::nullopt;
  const std::size_t a_digits = scan.digits();
  const char separator = scan.one_of("/-.");
  if (!separator) return std::nullopt;
  const auto b = scan.number(2);
  if (!b || scan.one_of("/-.") != separator) return std::nullopt;
  const auto c = scan.number(4);
  if (!c) return std::nullopt;
  if (a_digits == 4) return Date{*a, *b, *c, false};
  Date out;
  out.year = scan.digits() == 4 ? *c : 2000 + *c;
  out.same = separator != '.' && *a == *b;
  const bool month_first = separator != '.' && (*b > 12 || (*a <= 12 && order == DateOrder::month_first));
  out.month = month_first ? *a : *b;
  out.day = month_first ? *b : *a;
  return out;
}

}  // namespace

std::optional<ForeignTime> parse_foreign_time(std::string_view text, DateOrder order) {
  text = trim(text);
  if (text.empty()) return std::nullopt;
  if (auto number = bare_number(text)) return number;
  Scanner scan(text);
  const auto date = scan_date(scan, order);
  if (!date) return std::nullopt;
  const std::chrono::year_month_day ymd{std::chrono::year{date->year},
                                        std::chrono::month{static_cast<unsigned>(date->month)},
                                        std::chrono::day{static_cast<unsigned>(date->day)}};
  if (!ymd.ok() || date->year < 1970 || date->year > 2200) return std::nullopt;
  scan.one_of(",");
  scan.one_of("Tt");
  scan.blanks();
  auto hour = scan.number(2);
  if (!hour || !scan.one_of(":")) return std::nullopt;
  const auto minute = scan.number(2);
  int second = 0;
  std::int64_t fraction = 0;
  if (scan.one_of(":")) {
    const auto s = scan.number(2);
    if (!s) return std::nullopt;
    second = *s;
    if (scan.one_of(".,")) fraction = scan.fraction_ns();
  }
  scan.blanks();
  const bool pm = scan.word("pm"), am = !pm && scan.word("am");
  if (pm || am) {
    if (*hour < 1 || *hour > 12) return std::nullopt;
    hour = *hour % 12 + (pm ? 12 : 0);
  }
  if (!minute || *hour > 23 || *minute > 59 || second > 60) return std::nullopt;
  scan.blanks();
  const auto zone = zone_minutes(scan);
  if (!trim(scan.rest()).empty()) return std::nullopt;
  ForeignTime out;
  const auto days = std::chrono::sys_days(ymd).time_since_epoch().count();
  out.unix_ns = (static_cast<std::int64_t>(days) * 86400 + *hour * 3600 + *minute * 60 + second - zone.value_or(0) * 60) *
                    kSecond +
                fraction;
  out.zone = zone.has_value();
  out.same_day_and_month = date->same;
  return out;
}

DateOrder order_told_by(std::string_view text) {
  Scanner scan(trim(text));
  const auto a = scan.number(4);
  if (!a || scan.digits() == 4) return DateOrder::unknown;
  const char separator = scan.one_of("/-.");
  const auto b = scan.number(2);
  if (!separator || !b) return DateOrder::unknown;
  if (separator == '.' || *a > 12) return DateOrder::day_first;
  return *b > 12 ? DateOrder::month_first : DateOrder::unknown;
}

}  // namespace ergometer::foreign
