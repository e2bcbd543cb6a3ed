// Region: a named, nested interval of the workload with attributes, as regions.csv keeps it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace ergometer {

struct Region {
  MonoTime begin, end;
  bool cut = false;         // never ended: the process died or the run stopped; `end` is the last moment known
  int pid = 0;
  int tid = 0;
  int rank = -1;            // -1: not a ranked job
  std::string path;         // "train/epoch[3]/step[17]"
  std::vector<std::pair<std::string, std::string>> attributes;  // in the order set; a key set twice keeps the last

  [[nodiscard]] Nanos duration() const { return end - begin; }
  // Last component without its index: "step".
  [[nodiscard]] std::string_view name() const;
  // Index of the last component, if it has one.
  [[nodiscard]] std::optional<std::int64_t> index() const;
  // Path without the last component: "train/epoch[3]"; "" for a top region.
  [[nodiscard]] std::string_view parent() const;
  // Path with all indices removed: "train/epoch/step", the key under which repetitions are pooled.
  [[nodiscard]] std::string family() const;
  // Value of an attribute, or nullopt.
  [[nodiscard]] std::optional<std::string_view> attribute(std::string_view key) const;
};

}  // namespace ergometer
