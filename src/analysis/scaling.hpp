// Scaling laws: time or energy against the number of GPUs, the cap or the clock, as power laws with intervals, and what
// follows from them: speed-up, efficiency, energy to solution, E = k x GPU-hours. Pure; used by `study show` and
// reports. docs/analysis.md has the formulas and their sources.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/statistics.hpp"
#include "base/result.hpp"
#include "model/study_table.hpp"

namespace ergometer {

struct Point {
  double x = 0, y = 0;  // both above 0
};

// y = a x^-b + c; c = 0 unless it was asked for and the points tell it.
struct PowerLaw {
  double a = 0, b = 0, c = 0;
  std::optional<Bounds> a_interval, b_interval, c_interval;  // 95 %; unset where no degree of freedom is left
  bool has_floor = false;                                    // c was fitted
  double r_squared = 0;                                      // of ln y
  std::optional<double> residual_share;                      // standard deviation of ln y around the law
  std::vector<double> residuals;                             // ln(y / law), in the order of the points
  // Each distinct x left out in turn and predicted from the others: root mean square of ln(y / prediction), as a share;
  // and the largest x predicted from the smaller ones. Unset below four distinct x (with a floor: five).
  std::optional<double> held_out_error, largest_held_out_error;
  double x_min = 0, x_max = 0;  // the fitted range
  std::size_t points = 0;
  // For `predict`: covariance of (ln a, b, c) for a residual of 1, and the degrees of freedom of the residual.
  std::array<std::array<double, 3>, 3> covariance{};
  int error_dof = 0;
};

struct Prediction {
  double value = 0;
  std::optional<Bounds> interval;   // 95 %, of one new measurement
  std::optional<std::string> warning;  // outside the fitted range: how far
};

// ln y = ln a - b ln x by least squares, Student's intervals. With `floor` the law with c by least squares of relative
// errors, c >= 0; falls back to c = 0 (has_floor false) where the points do not tell one. Errors (invalid_argument): fewer
// than two distinct x (three with a floor asked for fall back), a value not above 0.
[[nodiscard]] Result<PowerLaw> fit_power_law(std::span<const Point> points, bool floor = false);
[[nodiscard]] Prediction predict(const PowerLaw& law, double x);

// The points of a study: x from a factor whose levels are numbers, y a metric, at fixed levels of other factors; one
// point a valid run. Errors name what is missing.
[[nodiscard]] Result<std::vector<Point>> points_of(const StudyTable& table, const std::string& factor,
                                                   const std::string& metric,
                                                   const std::vector<std::size_t>& cells);

// One count of GPUs against the smallest count that was measured.
struct ScalingRow {
  double gpus = 0;
  Centre time_s;
  std::optional<Centre> energy_j;      // to solution
  double speed_up = 1;                 // T(n0) / T(n)
  double efficiency = 1;               // speed_up n0 / n
  std::optional<Bounds> speed_up_interval, efficiency_interval;
  std::optional<double> energy_ratio;  // E(n) / E(n0)
  std::optional<Bounds> energy_ratio_interval;
};
// Strong scaling from points (GPUs, seconds for the same work) and, if known, (GPUs, joules). Sorted by GPUs.
[[nodiscard]] std::vector<ScalingRow> scaling_rows(std::span<const Point> time_s, std::span<const Point> energy_j);

// E = k x GPU-hours: least squares through the origin with relative errors, so k is the mean of E / h.
struct EnergyRate {
  double joules_per_gpu_hour = 0;
  double mean_power_per_gpu_w = 0;  // the same number, as a power
  std::optional<Bounds> interval;   // of joules_per_gpu_hour
  double r_squared = 0;             // of ln E
  double largest_deviation = 0;     // of one run, as a share
  std::size_t runs = 0;
};
// x is GPU-hours, y joules. Unset for no points.
[[nodiscard]] std::optional<EnergyRate> energy_rate(std::span<const Point> points);

}  // namespace ergometer
