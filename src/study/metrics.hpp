// The metrics of a run: what a study compares, as numbers by name with their meaning. Pure; used by the engine and for the
// table.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/manifest.hpp"
#include "model/study_table.hpp"
#include "model/summary.hpp"
#include "study/readings.hpp"

namespace ergometer {

// All metrics that a run may have, in the order in which they are shown.
[[nodiscard]] const std::vector<StudyMetric>& study_metrics();

// One node's record of a run.
struct MeasuredRun {
  Manifest manifest;
  Summary summary;
  RunReadings readings;
};

// Whether "gpu/N/COLUMN" is of a GPU that the command could use: one in the run's total. Where no GPU is in it, all count.
[[nodiscard]] bool is_used_gpu(const MeasuredRun& run, const std::string& key);

// What is not known is not in the map. An epoch of several ranks is one epoch: its time is the mean of theirs, its work the
// sum. Three energies of the GPUs stand side by side: by the counter, by the integral of the power, and as wall time times
// mean power (arXiv:2201.12423); without GPUs they are those of all devices in the total.
[[nodiscard]] std::map<std::string, StudyValue> metrics_of(const MeasuredRun& run);
// Of a run over several nodes: energies and amounts add, times are those of the slowest, ratios are means.
[[nodiscard]] std::map<std::string, StudyValue> metrics_of_nodes(const std::vector<MeasuredRun>& nodes);

}  // namespace ergometer
