// A study as the data of its page: JSON, schema "ergometer.page/1" (docs/report.md). The caller brings what the
// analysis says, as plain values. Used by `ergometer report`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/study_table.hpp"
#include "report/html_page.hpp"

namespace ergometer {

// A 95 % interval.
struct PageInterval {
  double low = 0, high = 0;
};

// A metric of one cell over its valid runs.
struct PageCentre {
  std::size_t cell = 0;
  std::string metric;
  double value = 0;
  std::optional<PageInterval> interval;  // unset for a single run
  std::size_t count = 0;
};

// metric = a factor^-b + c over the cells of one group, which share the levels of all other factors.
struct PageFit {
  std::string factor, metric, group;
  std::vector<std::size_t> cells;
  double a = 0, b = 0, c = 0, r_squared = 0;
  std::optional<PageInterval> b_interval;
  std::optional<double> held_out_error;
  double x_min = 0, x_max = 0;
};

struct PageChange {
  double share = 0;
  std::optional<PageInterval> interval;
};

// The best cell of its group under one rule.
struct PagePick {
  std::string rule, group;
  std::size_t cell = 0, reference = 0;
  PageChange time, energy;         // against the reference
  std::vector<std::size_t> alike;  // cells that the intervals do not tell from the best
  bool intervals_known = true;     // false: each setting was measured once
};

struct PageLevel {
  std::size_t level = 0;
  double change = 0;  // share of the overall mean
  std::optional<PageInterval> interval;
};
struct PageEffect {
  std::size_t factor = 0;
  std::string metric;
  std::vector<PageLevel> levels;
  double variance_share = 0;
  std::optional<double> p_value;
  std::string not_estimable;
};

// Cells that are the same work at other settings: those that a decision chooses among.
struct PageFront {
  std::string group;
  std::vector<std::size_t> cells, front, maybe;  // maybe: beaten, but not beyond the intervals
};

struct StudyPage {
  StudyTable table;
  std::string time_metric, energy_metric;  // "" if the study has none
  std::vector<PageCentre> centres;
  std::vector<PageFit> fits;
  std::vector<PageFront> fronts;
  std::vector<PagePick> picks;
  std::vector<PageEffect> effects;
  std::vector<std::string> missing;  // what could not be derived, and why
  PageFactors factors;
};

// Strict JSON in ASCII; deterministic.
[[nodiscard]] std::string study_page_json(const StudyPage& page);

}  // namespace ergometer
