// What a found set of sensors means for a run: whether the required ones are there, and which absences the user must
// hear about. Pure functions, used by Session.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/sensor.hpp"

namespace ergometer {

// Each name of `require` is an interface ("nvml"), a sensor ("gpu0-power") or a domain ("gpu/0"; "gpu" for any).
// Errors: invalid_argument for a name that could never be met, with the nearest known one; unavailable for one that is
// not met here, with the reasons and the remedy of its absence.
[[nodiscard]] Result<void> check_requirements(const std::vector<std::string>& require, const Discovery& found);

// One warning for each interface that is there and may not be used, if no other interface measures its domain and no
// warning of `found` speaks of it already. What the machine does not have is no warning; it stays in node.json.
[[nodiscard]] std::vector<Warning> absence_warnings(const Discovery& found);

// The variables that decide what runs where (CUDA_*, OMP_*, SLURM_*, RANK, ...), without anything named like a secret.
[[nodiscard]] Environment recorded_environment(const Environment& environment);

}  // namespace ergometer
