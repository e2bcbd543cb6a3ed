// What the slurm backend reads out of the texts of Slurm's tools. Pure. A value that Slurm does not have ("n/s", "n/a",
// blank, 0, NO_VAL) is unset, never 0.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ergometer::slurm {

// `scontrol show config`.
struct Config {
  std::string energy_type;              // "rapl" of "acct_gather_energy/rapl"; "" or "none": nothing is gathered
  std::optional<double> node_period_s;  // AcctGatherNodeFreq; unset: nodes do not report
};
[[nodiscard]] Config parse_config(std::string_view text);

// `scontrol show node NAME`. ConsumedJoules is known to Slurm before 21.08 only.
struct NodeEnergy {
  std::optional<double> power_w, energy_j;
};
[[nodiscard]] NodeEnergy parse_node(std::string_view text);

// `sstat -n -P -o ConsumedEnergyRaw` of one step: joules.
[[nodiscard]] std::optional<double> parse_step(std::string_view text);

}  // namespace ergometer::slurm
