// Baselines: the idle power of each domain before and after the command, what state it was measured in, and how far it
// drifted. Used by Summariser; docs/method.md, section 9.
#pragma once

#include <span>
#include <vector>

#include "analysis/combine.hpp"
#include "analysis/domain.hpp"
#include "model/node.hpp"

namespace ergometer {

struct Baselines {
  std::vector<IdlePower> idle;  // one a domain
  std::vector<Baseline> told;   // of those that have one
};

// From the lines of the idle phases. Where both are known, the idle power is their mean and half of the drift is in its
// uncertainty.
[[nodiscard]] Baselines measure_baselines(const Node& node, const std::vector<Domain>& domains, const Rows& rows,
                                          std::span<const Gauge> gauges);

// A warning for each domain whose idle power after the command is not what it was before.
void find_drift(const std::vector<Baseline>& baselines, std::vector<Warning>& out);

// "no CUDA context", "2 compute processes": from the mean number of compute processes on an NVIDIA GPU; "" if that is
// not known.
[[nodiscard]] std::string context_of(const Node& node, const std::string& domain, std::optional<double> processes);

}  // namespace ergometer
