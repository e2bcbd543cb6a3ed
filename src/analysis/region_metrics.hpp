// What a region line says beside its energy: its place and name, its numeric attributes, the mean of every gauge, and
// energy per unit of work. Used by Summariser.
#pragma once

#include <vector>

#include "analysis/candidate.hpp"
#include "model/summary.hpp"

namespace ergometer {

// Whether an attribute counts pieces of work, which add up over regions; others are averaged.
[[nodiscard]] bool is_work(std::string_view attribute);
// Adds energy per piece of work (and its uncertainty) for each kind of work in `out.metrics`, if the energy is known.
void add_work_metrics(RegionEnergy& out);

// Path, name, index, count, times and rank of line `line`, without energies.
[[nodiscard]] RegionEnergy describe(const Rows& rows, std::uint32_t line, MonoTime run_begin);

// Adds metrics to a line whose energy is known. Attributes that are numbers keep their names; of a pooled line work
// (samples, tokens, molecules) is summed and other attributes are averaged over the regions that have them. Gauges
// come as "gpu/0/sm_active_ratio", over the time that they reported. Energy per work: "energy_per_sample_j", ...
void add_metrics(const Rows& rows, std::uint32_t line, const std::vector<Gauge>& gauges, RegionEnergy& out);

}  // namespace ergometer
