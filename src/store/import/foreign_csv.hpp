// CSV of other programs: the separator, the units and the words for "missing" are found out, not agreed. Used by the
// importers in this folder. Fields are views, so that a log of a day needs no more than its own size.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ergometer::foreign {

// One record after the other; blank lines and lines that begin with '#' are passed over.
class ForeignCsv {
 public:
  // Takes the first line as the header; ',', ';' or a tab separates, whichever it has most of. Error (corrupt): no line.
  [[nodiscard]] static Result<ForeignCsv> open(std::string_view text, const std::string& source);

  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  // With ';' or a tab between fields a comma may stand in a number.
  [[nodiscard]] bool decimal_comma() const { return separator_ != ','; }
  // Trimmed fields of the next record; false at the end. They are valid until the next call. Records of another length
  // than the header are passed over and counted.
  bool next(std::vector<std::string_view>& fields);
  [[nodiscard]] std::size_t line() const { return record_line_; }  // of the record that next() gave, from 1
  [[nodiscard]] std::size_t left_out() const { return left_out_; }
  [[nodiscard]] std::size_t first_left_out() const { return first_left_out_; }
  void rewind();

 private:
  bool record(std::vector<std::string_view>& fields);
  std::string_view text_;
  char separator_ = ',';
  std::vector<std::string> header_;
  std::size_t pos_ = 0, body_ = 0, line_ = 1, body_line_ = 1, record_line_ = 0, left_out_ = 0, first_left_out_ = 0;
  std::vector<std::string> unquoted_;  // fields with doubled quotes, which no view of the text can show
};

// "power.draw [W]" and "power_draw_W" are name "power_draw" and unit "W".
struct ColumnName {
  std::string name;  // lower case, words joined by '_'
  std::string unit;  // "" if it says none
};
[[nodiscard]] ColumnName column_name(std::string_view header);

enum class UnitKind { power, energy, ratio, bytes, frequency, temperature, plain };
// What a number in `unit` is in SI ("MiB" 1048576, "%" 0.01); unset for a unit of another kind.
[[nodiscard]] std::optional<double> unit_factor(std::string_view unit, UnitKind kind);

// A field as a number in SI. `unit` counts where the field bears none.
struct ForeignNumber {
  std::optional<double> value;  // unset: missing
  bool readable = true;         // false: neither a number nor a word for "missing"
};
[[nodiscard]] ForeignNumber foreign_number(std::string_view field, std::string_view unit, UnitKind kind,
                                           bool decimal_comma);

}  // namespace ergometer::foreign
