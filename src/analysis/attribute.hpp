// The measured command's part of the energy of a device or node that it shares with others: an estimate with the bounds
// between which any way of sharing out lies (docs/method.md, "Shares"). Pure functions; used by Summariser.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/candidate.hpp"
#include "analysis/combine.hpp"
#include "analysis/domain.hpp"
#include "model/node.hpp"
#include "model/summary.hpp"

namespace ergometer {

// A part of a whole, 0..1, that is known between bounds. Without an estimate only the bounds are known.
struct Part {
  std::optional<double> estimate;
  double lower = 0, upper = 1;
};

// Of amounts that add up to a whole: the command's own, others', and what belongs to either. Negative amounts count as
// 0; if all are 0 nothing is known.
[[nodiscard]] Part part_of(double own, double others, double unattributed);

// The energy of a device over an interval; `idle_j` is what it would have drawn doing nothing, if that was measured.
struct DeviceEnergy {
  double total_j = 0;
  std::optional<double> idle_j;
};

// Shares out idle and active energy: E0 idle + (E - E0) active, with E0 within 0..E if it was not measured. The
// estimate is unset if a part has none, or if it depends on an E0 that is not known.
[[nodiscard]] Attribution attribute(const DeviceEnergy& energy, const Part& idle, const Part& active);

// By activity: the estimate shares idle power in proportion to activity; the bounds give the command none of it and
// all.
[[nodiscard]] Attribution attribute_by_activity(const DeviceEnergy& energy, const Part& activity);

// One GPU instance of a GPU that is cut into slices.
struct SliceUse {
  double multiprocessors = 0;
  double own = 0;                                  // the part of its multiprocessors that the command was given, 0..1
  std::optional<double> sm_active, memory_active;  // means over the interval, of the instance's own parts
};

// Idle energy by the slices' multiprocessors, active energy by their activity (multiprocessors times SM activity); the
// bounds hold the same by memory activity. Without the activity of each slice only bounds are known; without `own`
// anywhere, 0 to all.
[[nodiscard]] Attribution attribute_slices(const DeviceEnergy& energy, std::span<const SliceUse> slices);

// All attributions of one node over the run: a GPU on which other processes were seen, whose processes cannot be told,
// or that is cut into slices; and the processor packages by CPU time. `energies` and `idle`
// belong to `domains`.
[[nodiscard]] std::vector<Attribution> attribute_run(const Node& node, std::span<const Domain> domains,
                                                     std::span<const DomainEnergy> energies,
                                                     std::span<const IdlePower> idle, std::span<const Gauge> gauges,
                                                     double run_s);

}  // namespace ergometer
