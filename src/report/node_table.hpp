// The tables of a whole node: where its energy went, its idle power before and after, and "time times power" beside
// what was measured. Used by the text report.
#pragma once

#include <string>

#include "report/text.hpp"

namespace ergometer {

// Ready to print, with an empty line before each table; "" if there is nothing to tell.
[[nodiscard]] std::string node_tables(const Summary& summary, const TextOptions& options);

}  // namespace ergometer
