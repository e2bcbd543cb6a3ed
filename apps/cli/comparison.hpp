// Two or more runs against the first of them: what `compare` prints. Kept apart from the command so that other views of a
// comparison are made of the same values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/statistics.hpp"
#include "library/load_run.hpp"
#include "report_pages.hpp"

namespace ergometer::cli {

// One run's numbers; what is unset is not known.
struct ComparedRun {
  std::string path, name;  // `name` is unlike every other's
  std::optional<double> duration_s, energy_j, uncertainty_j, mean_power_w, energy_per_sample_j;
  std::map<std::string, double> domains_j;  // of the measured domains in the total; "node: gpu/0" where there are several
  bool partial = false, valid = true;
};

// A quantity of one run against the first run's.
struct ComparedQuantity {
  std::string quantity;  // "energy", "time", "energy per sample"
  std::size_t run = 0;   // index into the runs
  // Of the whole runs: difference as a share of the first, and what the sensors leave open (conservative where both runs
  // used one sensor: its gain error cancels, which is not taken into account).
  double difference = 0;
  std::optional<Bounds> interval;
  // Of the regions that both have, paired by path: chance from region to region. Unset below two pairs.
  std::optional<Comparison> regions;
  std::string family;  // of these regions: "train/epoch"
  std::string verdict;
};

struct RunComparison {
  std::vector<ComparedRun> runs;
  std::vector<ComparedQuantity> quantities;
  std::vector<std::string> caveats;  // what makes the runs unlike each other
};

// `paths` and `runs` go together; at least two. Pure.
[[nodiscard]] RunComparison compare_runs(const std::vector<std::string>& paths, const std::vector<LoadedRun>& runs);
[[nodiscard]] std::string comparison_text(const RunComparison& comparison, std::size_t width);
// Schema "ergometer.comparison/1" (docs/schemas/comparison.schema.json).
[[nodiscard]] std::string comparison_json(const RunComparison& comparison);
// The same as a page: figures and tables in one HTML file.
[[nodiscard]] PageText comparison_page(const RunComparison& comparison);

}  // namespace ergometer::cli
