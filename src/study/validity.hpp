// Whether a run took place under the conditions that its cell asks for. Pure; used by the engine. An invalid run is kept
// and shown with its reasons, and never averaged.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/control_guard.hpp"
#include "study/metrics.hpp"
#include "study/study_file.hpp"

namespace ergometer {

// What the engine saw of the controls.
struct ControlSightings {
  std::vector<Applied> before;          // right after they were set
  std::vector<Applied> under_load;      // the last look while the command worked
  std::vector<std::string> changed;     // what somebody else set meanwhile, as sentences
};

struct Judgement {
  Verdict verdict = Verdict::valid;
  std::vector<std::string> reasons;       // why not valid; of a valid run what is odd
  std::optional<double> start_celsius;    // of the hottest GPU
};

// `block_celsius`: start temperature of the block's first run.
[[nodiscard]] Judgement judge(const ValidityRules& rules, const std::vector<MeasuredRun>& nodes,
                              const ControlSightings& controls, const std::optional<double>& block_celsius);

}  // namespace ergometer
