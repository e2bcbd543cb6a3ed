// What a study's table can be asked, whatever it is about: which metrics tell the cost of the same work, which cells are
// the same work at other settings, and what they are compared with. Used by `study show` and by the report's page, so that
// both answer alike.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/p2.hpp"
#include "analysis/scaling.hpp"
#include "model/study_table.hpp"

namespace ergometer::cli {

using Cells = std::vector<std::size_t>;

// Time and energy of the same amount of work; "" where the study has none.
struct MetricPair {
  std::string time, energy;
};

// By epoch, where the epochs of the same work have the same number of samples; else by sample; else of whole runs. Measured
// before modelled. An imported table may call its metrics anything: there the first of the right units.
[[nodiscard]] MetricPair comparison_metrics(const StudyTable& table);

// Whether a factor says what is computed (workload, mode, data set, ...) or where Zeus's tables say on which GPU; the others
// are what a user may choose.
[[nodiscard]] bool is_work_factor(const StudyFactor& factor);
// Whether all levels are numbers above 0, at least two.
[[nodiscard]] bool is_numeric(const StudyFactor& factor);
// Cells that are the same work at other settings, by the name of the work ("" for a study of one work).
[[nodiscard]] std::map<std::string, Cells> cells_by_work(const StudyTable& table);
// Cells that differ in factor number `factor` alone, by what they have in common.
[[nodiscard]] std::map<std::string, Cells> cells_along(const StudyTable& table, std::size_t factor);

// The factor whose largest level is the device without a limit, if the study varies one.
[[nodiscard]] std::optional<std::string> limit_factor(const StudyTable& table);

// A power law of a metric against a factor of numbers, through at least three of its levels.
struct StudyLaw {
  std::string factor, metric, group;
  Cells cells;
  PowerLaw law;
};
[[nodiscard]] std::vector<StudyLaw> scaling_laws(const StudyTable& table, const MetricPair& metrics);

// Speed-up, efficiency and energy over the counts of a factor that counts devices: gpus, ranks or nodes.
struct StudyScaling {
  std::string factor, group;
  std::vector<ScalingRow> rows;
};
[[nodiscard]] std::vector<StudyScaling> scaling_tables(const StudyTable& table, const MetricPair& metrics);

// E = k x GPU-hours by work; of runs with measured energy and a known count of GPUs.
struct StudyRate {
  std::string work;
  EnergyRate rate;
};
[[nodiscard]] std::vector<StudyRate> energy_rates(const StudyTable& table);

// The names under which protocol 2 stands in this study; unset if it does not compare classes of nodes.
[[nodiscard]] std::optional<P2Names> p2_names(const StudyTable& table);

}  // namespace ergometer::cli
