// A meter's file read as a whole, after a run. Used by `ergometer check-meter --import`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device/meter/format.hpp"
#include "model/trace.hpp"

namespace ergometer::meter {

struct Imported {
  std::vector<Row> rows;       // in order of time, one value each
  std::size_t unreadable = 0;  // lines that are none of the format
  std::size_t refused = 0;     // rows whose power is blank, 0 or impossible; they are kept as missing
};

// `to_mono` maps wall time. Errors: as of format_of; invalid_argument for a file without times or without rows.
[[nodiscard]] Result<Imported> read_meter_file(const std::string& path, const Wishes& wishes,
                                               const std::function<MonoTime(WallTime)>& to_mono);

}  // namespace ergometer::meter
