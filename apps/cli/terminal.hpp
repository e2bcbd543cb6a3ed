// The terminal's width. Used by the commands that print tables.
#pragma once

namespace ergometer::cli {

inline constexpr int kNarrowestTerminal = 40;

// Columns of standard output's terminal; 100 where it is none or narrower than a table can be.
[[nodiscard]] int table_width();

}  // namespace ergometer::cli
