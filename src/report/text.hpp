// A Summary as text for a terminal. Used by run and show.
#pragma once

#include <string>

#include "model/manifest.hpp"
#include "model/summary.hpp"

namespace ergometer {

enum class GroupBy { epoch, phase, domain };

struct TextOptions {
  int width = 100;  // columns of the terminal
  GroupBy by = GroupBy::epoch;
  bool colour = false;
};

// The run's heading, its table by domain, its table by region (as `by` says) and its warnings with remedies. A missing
// value is shown as a dash, a modelled one with a leading '~', an uncertainty as "± ". Ends with a line end.
[[nodiscard]] std::string render_text(const Manifest& manifest, const Summary& summary, const TextOptions& options);

}  // namespace ergometer
