// RowParser: from the text of a sample file, given in pieces, to columns of numbers. The hot path of reading a run:
// no allocation a row, integers and plain decimals by hand. Used by sample_file.cpp only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ergometer {

class RowParser {
 public:
  struct Numbers {
    std::vector<double> values;
    std::vector<std::uint8_t> present;  // empty: all are
  };
  // What was left out, with the line of the first.
  struct Count {
    std::size_t rows = 0, first_line = 0;
  };

  // The columns to expect if the text begins without a header.
  explicit RowParser(std::vector<std::string> expected) : expected_(std::move(expected)) {}

  // Text goes on with `piece`; lines may be cut anywhere.
  void feed(std::string_view piece);
  // All text so far is good.
  void keep();
  // Text since the last keep() is not to be trusted: its rows are forgotten. The next piece begins a line.
  void forget();
  // The end: a last line may lack its line end.
  void finish();

  // Names of all columns, the time columns included; empty if neither a header nor expected columns were there.
  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  [[nodiscard]] bool has_read_ns() const { return has_read_; }
  // Whether the columns are those expected, for want of a header.
  [[nodiscard]] bool header_assumed() const { return assumed_; }

  std::vector<std::int64_t> t_ns, read_ns;
  std::vector<Numbers> columns;  // those after the time columns
  bool ascending = true;         // each time later than the one before
  Count bad_rows;                // wrong number of fields, or not numbers
  Count not_finite;              // values nan or inf, taken as missing

 private:
  void line(std::string_view text);
  void set_header(std::string_view text);
  void use_columns(std::vector<std::string> names);
  bool fast_row(const char* at, const char* end);
  bool slow_row(std::string_view text);
  void push(std::int64_t t, std::int64_t read);
  static void truncate(Numbers& numbers, std::size_t rows);

  std::vector<std::string> expected_, header_;
  bool has_read_ = false, assumed_ = false;
  bool first_line_ = true, skipping_ = false;
  std::string rest_;         // a line whose end has not come yet
  std::vector<double> row_;  // the row being read
  std::vector<std::uint8_t> row_present_;
  std::size_t lines_ = 0;
  std::int64_t last_t_ = INT64_MIN;
  struct Mark {
    std::size_t rows = 0, lines = 0;
    bool header = false, ascending = true;
    Count bad_rows, not_finite;
  } mark_;
};

}  // namespace ergometer
