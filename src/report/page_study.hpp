// A study as the data of its page: JSON, schema "ergometer.page/1" (docs/report.md). The caller brings what the
// analysis says, as plain values. Used by `ergometer report`.
#pragma once

#include <cstddef>
#include <map>
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

struct PageNumber {
  double value = 0;
  std::optional<PageInterval> interval;
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

// One count of GPUs, ranks or nodes against the smallest.
struct PageScalingRow {
  double count = 0, time = 0;
  std::optional<PageInterval> time_interval;
  std::optional<double> energy;
  std::optional<PageInterval> energy_interval;
  double speed_up = 1;
  std::optional<PageInterval> speed_up_interval;
  double efficiency = 1;
  std::optional<PageInterval> efficiency_interval;
  std::optional<double> energy_ratio;
  std::optional<PageInterval> energy_ratio_interval;
};
struct PageScaling {
  std::string factor, group;
  std::vector<PageScalingRow> rows;
};

// Energy of the GPUs = k x GPU-hours.
struct PageRate {
  std::string work;
  double joules_per_gpu_hour = 0, mean_power_w = 0;
  std::optional<PageInterval> interval;  // of joules_per_gpu_hour
  double r_squared = 0, largest_deviation = 0;
  std::size_t runs = 0;
};

// The tables of protocol 2 (Caspart et al. 2022): classes of nodes against each other.
struct PageClassRow {
  std::string node_class, phase, setting;
  PageNumber runtime_s, energy_j;
  std::optional<double> mean_power_w;
  std::map<std::string, double> shares;  // of the energy, by component
};
struct PageClassRatio {
  std::string a, b, phase, setting;
  PageNumber runtime, energy;  // a over b
  double proxy_error = 0;
  std::optional<bool> runtime_is_proxy;
};
struct PageIdle {
  std::string node_class, phase, setting;
  PageNumber gpu_energy_j;
  double share = 0, penalty = 0;
};
struct PageBreakEven {
  std::string cpu_class, gpu_class, setting, kind;  // kind: "at_batch", "gpu_always", "cpu_always"
  std::optional<double> batch;
  double low = 0, high = 0;
};
struct PageClasses {
  bool modelled = false;  // energies are a model's
  std::vector<PageClassRow> rows;
  std::vector<PageClassRatio> ratios;
  std::vector<PageIdle> idle;
  std::vector<PageBreakEven> break_even;
};

struct StudyPage {
  StudyTable table;
  std::string time_metric, energy_metric;  // "" if the study has none
  std::vector<std::size_t> work;  // factors that say what is computed; the others are what a user may choose
  std::vector<PageCentre> centres;
  std::vector<PageFit> fits;
  std::vector<PageScaling> scaling;
  std::vector<PageRate> rates;
  std::vector<PageFront> fronts;
  std::vector<PagePick> picks;
  std::vector<PageEffect> effects;
  std::optional<PageClasses> classes;
  std::vector<std::string> missing;  // what could not be derived, and why
  PageFactors factors;
};

// Strict JSON in ASCII; deterministic.
[[nodiscard]] std::string study_page_json(const StudyPage& page);

}  // namespace ergometer
