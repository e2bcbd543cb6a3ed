// Table: aligned text columns that fit a width by leaving out the least important ones. Used by the text report and by
// the command line's lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ergometer {

struct TableColumn {
  std::string title;
  bool right = true;  // numbers to the right, names to the left
  int rank = 0;       // columns of the highest rank leave first; rank 0 stays
};

struct Table {
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;  // each as long as columns
};

// Columns of the terminal that UTF-8 text takes, counting code points (the project's own texts hold nothing wider).
[[nodiscard]] std::size_t display_width(std::string_view text);
// Text without control characters, so that a name cannot steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);
// `text` cut to `width` code points, the last two being ".." if it was longer.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t width);
// Lines with a title line, two blanks between columns, no trailing blanks. A column that is empty in every row is left
// out. If the columns of rank 0 do not fit, the first column is shortened, to not less than 8.
[[nodiscard]] std::string render_table(const Table& table, std::size_t width, std::size_t indent = 2);
// Words of `text` in lines of at most `width`, each after `indent` blanks.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace ergometer
