// A Summary as text for a terminal. Used by run and show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/manifest.hpp"
#include "model/summary.hpp"

namespace ergometer {

// `rank`: each rank's own regions with the energy of its node, instead of the run's.
enum class GroupBy { epoch, phase, domain, rank };

// Mean power of equal parts of the run; unset where nothing was read.
struct PowerLine {
  std::string domain;
  std::vector<std::optional<double>> values_w;
};

struct TextOptions {
  int width = 100;  // columns of the terminal
  GroupBy by = GroupBy::epoch;
  bool colour = false;
  std::vector<PowerLine> power{};  // shown as sparklines; may be empty
};

// The run's heading, its table by domain, its table by region (as `by` says) and its warnings with remedies. A missing
// value is shown as a dash, a modelled one with a leading '~', an uncertainty as "± ". Ends with a line end.
[[nodiscard]] std::string render_text(const Manifest& manifest, const Summary& summary, const TextOptions& options);

}  // namespace ergometer
