#include "store/row_parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/csv.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kMaxLine = 1 << 20;
constexpr std::size_t kMaxColumns = 4096;

// Powers of ten that a double holds exactly; dividing an integer below 2^53 by one rounds once, so it is exact.
constexpr std::array kPowers{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr std::uint64_t kExact = std::uint64_t{1} << 53;

// At most 18 digits, which cannot overflow. Advances `at` to the first other character.
inline bool fast_int(const char*& at, const char* end, std::int64_t& out) {
  const char* begin = at;
  std::int64_t value = 0;
  while (at < end && is_digit(*at)) value = value * 10 + (*at++ - '0');
  if (at == begin || at - begin > 18) return false;
  out = value;
  return true;
}

// A decimal number that ends at a comma or at `end`.
inline bool fast_double(const char*& at, const char* end, double& out) {
  const char* begin = at;
  const bool negative = at < end && *at == '-';
  if (negative) ++at;
  std::uint64_t digits = 0;
  const char* first = at;
  while (at < end && is_digit(*at)) digits = digits * 10 + static_cast<std::uint64_t>(*at++ - '0');
  std::ptrdiff_t count = at - first, decimals = 0;
  if (count == 0) return false;
  if (at < end && *at == '.') {
    const char* fraction = ++at;
    while (at < end && is_digit(*at)) digits = digits * 10 + static_cast<std::uint64_t>(*at++ - '0');
    decimals = at - fraction;
    count += decimals;
  }
  if ((at == end || *at == ',') && count <= 19 && digits < kExact) {
    const double value = static_cast<double>(digits) / kPowers[static_cast<std::size_t>(decimals)];
    out = negative ? -value : value;
    return true;
  }
  // Seventeen digits or an exponent.
  const auto [stop, error] = std::from_chars(begin, end, out);
  at = stop;
  return error == std::errc{} && std::isfinite(out) && (at == end || *at == ',');
}

}  // namespace

void RowParser::feed(std::string_view piece) {
  while (!piece.empty()) {
    const void* found = std::memchr(piece.data(), '\n', piece.size());
    if (!found) {
      rest_ += piece;
      if (rest_.size() > kMaxLine) {
        rest_.clear();
        skipping_ = true;
      }
      return;
    }
    const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - piece.data());
    if (rest_.empty()) {
      line(piece.substr(0, length));
    } else {
      rest_ += piece.substr(0, length);
      const std::string whole = std::exchange(rest_, {});
      line(whole);
    }
    piece.remove_prefix(length + 1);
  }
}

void RowParser::keep() { mark_ = {t_ns.size(), lines_, !header_.empty(), ascending, bad_rows, not_finite}; }

void RowParser::forget() {
  t_ns.resize(mark_.rows);
  if (has_read_) read_ns.resize(mark_.rows);
  for (auto& column : columns) truncate(column, mark_.rows);
  last_t_ = t_ns.empty() ? INT64_MIN : t_ns.back();
  lines_ = mark_.lines;
  ascending = mark_.ascending;
  bad_rows = mark_.bad_rows;
  not_finite = mark_.not_finite;
  rest_.clear();
  skipping_ = false;
  if (mark_.header) return;
  header_.clear();
  columns.clear();
  has_read_ = false;
}

void RowParser::finish() {
  if (!rest_.empty() || skipping_) line(std::exchange(rest_, {}));
  keep();
}

void RowParser::truncate(Numbers& numbers, std::size_t rows) {
  numbers.values.resize(rows);
  if (!numbers.present.empty()) numbers.present.resize(rows);
}

void RowParser::line(std::string_view text) {
  ++lines_;
  if (std::exchange(skipping_, false)) {
    if (bad_rows.rows++ == 0) bad_rows.first_line = lines_;
    return;
  }
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.empty()) return;
  if (header_.empty()) {
    set_header(text);
    if (!assumed_) return;
  }
  if (fast_row(text.data(), text.data() + text.size()) || slow_row(text)) return;
  if (bad_rows.rows++ == 0) bad_rows.first_line = lines_;
}

void RowParser::set_header(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t at = 0;
  auto names = read_csv_record(text, at);
  if (names)
    for (auto& name : *names) name = std::string(trim(name));
  if (names && names->size() <= kMaxColumns && names->front() == "t_ns") return use_columns(std::move(*names));
  // A header lost with its frame. Without anything expected the line, like the rest, is a row that fits nowhere.
  assumed_ = !expected_.empty();
  if (assumed_)
    use_columns(expected_);
  else if (bad_rows.rows++ == 0)
    bad_rows.first_line = lines_;
}

void RowParser::use_columns(std::vector<std::string> names) {
  header_ = std::move(names);
  has_read_ = header_.size() > 1 && header_[1] == "read_ns";
  columns.assign(header_.size() - (has_read_ ? 2 : 1), {});
  row_.assign(columns.size(), 0);
  row_present_.assign(columns.size(), 0);
}

bool RowParser::fast_row(const char* at, const char* end) {
  std::int64_t t = 0, read = 0;
  if (!fast_int(at, end, t)) return false;
  if (has_read_) {
    if (at == end || *at++ != ',') return false;
    if (at < end && *at != ',' && !fast_int(at, end, read)) return false;
  }
  for (std::size_t i = 0; i < row_.size(); ++i) {
    if (at == end || *at++ != ',') return false;
    const bool present = at < end && *at != ',';
    row_[i] = 0;
    row_present_[i] = present ? 1 : 0;
    if (present && !fast_double(at, end, row_[i])) return false;
  }
  if (at != end) return false;
  push(t, read);
  return true;
}

// Blanks, quotes, signs, nan and inf.
bool RowParser::slow_row(std::string_view text) {
  std::size_t at = 0;
  const auto fields = read_csv_record(text, at);
  if (!fields || fields->size() != header_.size()) return false;
  const auto t = parse_int(fields->front());
  std::optional<std::int64_t> read = 0;
  const std::size_t first = has_read_ ? 2 : 1;
  if (has_read_ && !trim((*fields)[1]).empty()) read = parse_int((*fields)[1]);
  if (!t || !read) return false;
  std::size_t not_numbers = 0;
  for (std::size_t i = 0; i < row_.size(); ++i) {
    std::string_view field = trim((*fields)[first + i]);
    if (field.starts_with('+')) field.remove_prefix(1);
    row_[i] = 0;
    row_present_[i] = 0;
    if (field.empty()) continue;
    double value = 0;
    const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error == std::errc::invalid_argument || stop != field.data() + field.size()) return false;
    if (error != std::errc{} || !std::isfinite(value)) {
      ++not_numbers;
      continue;
    }
    row_[i] = value;
    row_present_[i] = 1;
  }
  if (not_numbers > 0 && not_finite.rows == 0) not_finite.first_line = lines_;
  not_finite.rows += not_numbers;
  push(*t, *read);
  return true;
}

void RowParser::push(std::int64_t t, std::int64_t read) {
  if (t <= last_t_ && !t_ns.empty()) ascending = false;
  last_t_ = t;
  t_ns.push_back(t);
  if (has_read_) read_ns.push_back(read);
  for (std::size_t i = 0; i < row_.size(); ++i) {
    Numbers& column = columns[i];
    if (!row_present_[i] && column.present.empty()) column.present.assign(column.values.size(), 1);
    if (!column.present.empty() || !row_present_[i]) column.present.push_back(row_present_[i]);
    column.values.push_back(row_[i]);
  }
}

}  // namespace ergometer
