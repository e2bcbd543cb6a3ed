// MarkerLog: turns the raw records of marker files (src/region/record.hpp) into Regions. Used by RunWriter when a run
// ends, by RunReader for a run that did not end, and by Session for the region shown on the live line.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "model/region.hpp"

namespace ergometer {

class MarkerLog {
 public:
  // `folder` is RUN/markers; it need not exist yet.
  explicit MarkerLog(std::filesystem::path folder);
  MarkerLog(MarkerLog&&) noexcept;
  MarkerLog& operator=(MarkerLog&&) noexcept;
  ~MarkerLog();
  // Reads what has been added since the last call. Records that are half written are left for the next call; bytes
  // that are no record are skipped and counted in damaged().
  void poll();
  // Path of the innermost open region of the process that wrote last; "" if none. Cheap.
  [[nodiscard]] std::string current() const;
  // All regions so far, by begin time; those still open end at `cut_at` (or at their own last record if later) with
  // cut = true. Siblings of one name without an index of their own are numbered from 0 if there is more than one.
  [[nodiscard]] std::vector<Region> regions(MonoTime cut_at) const;
  [[nodiscard]] std::size_t damaged() const;
  // Marker files whose process no longer lives (by pid and start time), as of now.
  [[nodiscard]] std::vector<std::filesystem::path> ended() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergometer
