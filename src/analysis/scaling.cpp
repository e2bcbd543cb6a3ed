#include "analysis/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/study_slice.hpp"

namespace ergometer {
namespace {


using Vector3 = std::array<double, 3>;
using Matrix3 = std::array<std::array<double, 3>, 3>;

std::size_t distinct_x(std::span<const Point> points) {
  std::set<double> seen;
  for (const auto& p : points) seen.insert(p.x);
  return seen.size();
}

double law_value(const PowerLaw& law, double x) { return law.a * std::pow(x, -law.b) + law.c; }

// Derivatives of ln y by ln a, b and c.
Vector3 gradient_of(const PowerLaw& law, double x) {
  const double power = law.a * std::pow(x, -law.b), y = power + law.c;
  return {power / y, -power / y * std::log(x), 1 / y};
}

double error_of(const PowerLaw& law, std::span<const Point> points) {
  double sum = 0;
  for (const auto& p : points) sum += square(std::log(p.y / law_value(law, p.x)));
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

// Inverse of a symmetric matrix by cofactors; unset if it has none.
std::optional<Matrix3> inverse_of(const Matrix3& m) {
  Matrix3 out{};
  const auto minor = [&](std::size_t i, std::size_t j) {
    const std::size_t r0 = i == 0 ? 1 : 0, r1 = i == 2 ? 1 : 2, c0 = j == 0 ? 1 : 0, c1 = j == 2 ? 1 : 2;
    return m[r0][c0] * m[r1][c1] - m[r0][c1] * m[r1][c0];
  };
  const double determinant = m[0][0] * minor(0, 0) - m[0][1] * minor(0, 1) + m[0][2] * minor(0, 2);
  if (!(std::abs(determinant) > 1e-300)) return std::nullopt;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) out[j][i] = ((i + j) % 2 == 0 ? 1 : -1) * minor(i, j) / determinant;
  return out;
}

PowerLaw plain_law(std::span<const Point> points) {
  double mean_x = 0, mean_y = 0, sxx = 0, sxy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& p : points) {
    mean_x += std::log(p.x) / n;
    mean_y += std::log(p.y) / n;
  }
  for (const auto& p : points) {
    sxx += square(std::log(p.x) - mean_x);
    sxy += (std::log(p.x) - mean_x) * (std::log(p.y) - mean_y);
  }
  PowerLaw law;
  law.b = -sxy / sxx;
  law.a = std::exp(mean_y + law.b * mean_x);
  // Of ln a = mean_y + b mean_x, and of b.
  law.covariance = {{{1 / n + square(mean_x) / sxx, mean_x / sxx, 0}, {mean_x / sxx, 1 / sxx, 0}, {0, 0, 0}}};
  return law;
}

// For a given exponent a and c follow by linear least squares of relative errors: (y - a x^-b - c) / y.
PowerLaw law_at(std::span<const Point> points, double b) {
  double suu = 0, su1 = 0, s11 = 0, su = 0, s1 = 0;
  for (const auto& p : points) {
    const double u = std::pow(p.x, -b) / p.y, one = 1 / p.y;
    suu += u * u, su1 += u * one, s11 += one * one, su += u, s1 += one;
  }
  const double determinant = suu * s11 - su1 * su1;
  PowerLaw law;
  law.b = b;
  law.a = (su * s11 - s1 * su1) / determinant;
  law.c = (s1 * suu - su * su1) / determinant;
  return law;
}

// Levenberg and Marquardt's steps on the logarithms, from a start on a grid of exponents.
std::optional<PowerLaw> floor_law(std::span<const Point> points) {
  PowerLaw best;
  double error = std::numeric_limits<double>::infinity();
  for (double b = 0.05; b < 6; b *= 1.15) {
    const PowerLaw law = law_at(points, b);
    if (!(law.a > 0) || !(law.c > 0)) continue;
    if (const double e = error_of(law, points); e < error) best = law, error = e;
  }
  if (!std::isfinite(error)) return std::nullopt;
  double damping = 1e-3;
  for (int step = 0; step < 200 && damping < 1e12; ++step) {
    Matrix3 m{};
    Vector3 v{};
    for (const auto& p : points) {
      const auto g = gradient_of(best, p.x);
      const double r = std::log(p.y / law_value(best, p.x));
      for (std::size_t i = 0; i < 3; ++i) {
        v[i] += g[i] * r;
        for (std::size_t j = 0; j < 3; ++j) m[i][j] += g[i] * g[j];
      }
    }
    Matrix3 damped = m;
    for (std::size_t i = 0; i < 3; ++i) damped[i][i] *= 1 + damping;
    const auto inverse = inverse_of(damped);
    if (!inverse) return std::nullopt;
    if (const auto plain = inverse_of(m)) best.covariance = *plain;
    Vector3 move{};
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) move[i] += (*inverse)[i][j] * v[j];
    PowerLaw next = best;
    next.a *= std::exp(move[0]);
    next.b += move[1];
    next.c += move[2];
    const double e = error_of(next, points);
    if (next.a > 0 && next.c > 0 && e < error) {
      const bool settled = error - e < 1e-14 * error;
      best = next, error = e, damping /= 4;
      if (settled) break;
    } else {
      damping *= 4;
    }
  }
  return best;
}

// The floor is there if it improves the fit beyond chance (F test of one more parameter).
bool floor_shows(std::span<const Point> points, const PowerLaw& plain, const PowerLaw& with_floor) {
  const auto dof = static_cast<double>(points.size()) - 3;
  if (dof < 1) return false;
  const double error_plain = error_of(plain, points), error_floor = error_of(with_floor, points);
  if (error_floor <= 1e-20 * static_cast<double>(points.size()))  // exact, but for rounding
    return error_plain > 1e3 * error_floor;
  return f_tail((error_plain - error_floor) / (error_floor / dof), 1, dof) < 0.05;
}

PowerLaw best_law(std::span<const Point> points, bool with_floor) {
  PowerLaw plain = plain_law(points);
  if (!with_floor || distinct_x(points) < 3) return plain;
  auto law = floor_law(points);
  if (!law || !floor_shows(points, plain, *law)) return plain;
  law->has_floor = true;
  return *law;
}

void add_quality(std::span<const Point> points, PowerLaw& law) {
  double total = 0, mean = 0;
  for (const auto& p : points) mean += std::log(p.y) / static_cast<double>(points.size());
  for (const auto& p : points) {
    total += square(std::log(p.y) - mean);
    law.residuals.push_back(std::log(p.y / law_value(law, p.x)));
  }
  const double error = error_of(law, points);
  law.r_squared = total > 0 ? std::clamp(1 - error / total, 0.0, 1.0) : 1;
  law.error_dof = static_cast<int>(points.size()) - (law.has_floor ? 3 : 2);
  if (law.error_dof < 1) return;
  const double deviation = std::sqrt(error / law.error_dof);
  law.residual_share = std::expm1(deviation);
  const double t = t_quantile(0.975, law.error_dof) * deviation;
  const double half_a = t * std::sqrt(law.covariance[0][0]), half_b = t * std::sqrt(law.covariance[1][1]);
  law.a_interval = Bounds{law.a * std::exp(-half_a), law.a * std::exp(half_a)};
  law.b_interval = Bounds{law.b - half_b, law.b + half_b};
  if (!law.has_floor) return;
  const double half_c = t * std::sqrt(law.covariance[2][2]);
  law.c_interval = Bounds{law.c - half_c, law.c + half_c};
}

void add_held_out(std::span<const Point> points, bool with_floor, PowerLaw& law) {
  std::set<double> all;
  for (const auto& p : points) all.insert(p.x);
  if (all.size() < (law.has_floor ? 5U : 4U)) return;
  double squares = 0;
  for (const double x : all) {
    std::vector<Point> rest;
    std::copy_if(points.begin(), points.end(), std::back_inserter(rest), [&](const Point& p) { return p.x != x; });
    const PowerLaw other = best_law(rest, with_floor);
    double here = 0, count = 0;
    for (const auto& p : points) {
      if (p.x != x) continue;
      here += square(std::log(p.y / law_value(other, x)));
      ++count;
    }
    squares += here;
    if (x == *all.rbegin()) law.largest_held_out_error = std::expm1(std::sqrt(here / count));
  }
  law.held_out_error = std::expm1(std::sqrt(squares / static_cast<double>(points.size())));
}

std::vector<double> values_at(std::span<const Point> points, double x) {
  std::vector<double> out;
  for (const auto& p : points)
    if (p.x == x) out.push_back(p.y);
  return out;
}

Bounds shifted(const Bounds& b, double factor) { return {(1 + b.low) * factor, (1 + b.high) * factor}; }

}  // namespace

Result<PowerLaw> fit_power_law(std::span<const Point> points, bool with_floor) {
  for (const auto& p : points)
    if (!(p.x > 0) || !(p.y > 0) || !std::isfinite(p.x) || !std::isfinite(p.y))
      return fail(ErrorCode::invalid_argument, fmt::format("a power law needs values above 0, not ({}, {})", p.x, p.y));
  if (distinct_x(points) < 2)
    return fail(ErrorCode::invalid_argument, "a power law needs points at two places at least",
                "measure more levels of the factor");
  PowerLaw law = best_law(points, with_floor);
  law.points = points.size();
  const auto [low, high] =
      std::minmax_element(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  law.x_min = low->x;
  law.x_max = high->x;
  add_quality(points, law);
  add_held_out(points, with_floor, law);
  return law;
}

Prediction predict(const PowerLaw& law, double x) {
  Prediction out{law_value(law, x), std::nullopt, std::nullopt};
  if (law.residual_share && law.error_dof > 0) {
    const auto g = gradient_of(law, x);
    double variance = 1;  // of the new measurement itself
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) variance += g[i] * law.covariance[i][j] * g[j];
    const double half = t_quantile(0.975, law.error_dof) * std::log1p(*law.residual_share) * std::sqrt(variance);
    out.interval = Bounds{out.value * std::exp(-half), out.value * std::exp(half)};
  }
  if (x < law.x_min || x > law.x_max)
    out.warning = fmt::format("{:g} is outside the fitted range {:g} to {:g} ({:.2g} times its {} end): the law is not "
                              "tested there",
                              x, law.x_min, law.x_max, x > law.x_max ? x / law.x_max : x / law.x_min,
                              x > law.x_max ? "upper" : "lower");
  return out;
}

Result<std::vector<Point>> points_of(const StudyTable& table, const std::string& factor, const std::string& metric,
                                     const std::vector<std::size_t>& cells) {
  const auto known = metric_of(table, metric);
  if (!known) return tl::unexpected(known.error());
  const auto index = factor_index(table, factor);
  if (!index) return fail(ErrorCode::invalid_argument, fmt::format("the study has no factor \"{}\"", factor));
  std::vector<Point> out;
  for (const std::size_t cell : cells) {
    const std::size_t level = table.cells[cell].levels[*index];
    const auto& x = table.factors[*index].values[level];
    if (!x || !(*x > 0))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("level \"{}\" of {} is no number above 0: a power law needs one",
                              table.factors[*index].levels[level], factor));
    for (const double y : values_in(table, cell, metric)) out.push_back({*x, y});
  }
  return out;
}

std::vector<ScalingRow> scaling_rows(std::span<const Point> time_s, std::span<const Point> energy_j) {
  std::set<double> counts;
  for (const auto& p : time_s) counts.insert(p.x);
  std::vector<ScalingRow> out;
  if (counts.empty()) return out;
  const double smallest = *counts.begin();
  const auto first_time = values_at(time_s, smallest), first_energy = values_at(energy_j, smallest);
  for (const double n : counts) {
    ScalingRow row;
    row.gpus = n;
    const auto times = values_at(time_s, n), energies = values_at(energy_j, n);
    row.time_s = *mean_with_t(times);
    row.energy_j = mean_with_t(energies);
    const double ideal = n / smallest;
    if (const auto change = compare_unpaired(first_time, times)) {
      row.speed_up = 1 + change->difference;
      row.efficiency = row.speed_up / ideal;
      if (change->interval && n != smallest) {
        row.speed_up_interval = shifted(*change->interval, 1);
        row.efficiency_interval = shifted(*change->interval, 1 / ideal);
      }
    }
    if (const auto change = compare_unpaired(energies, first_energy)) {
      row.energy_ratio = 1 + change->difference;
      if (change->interval && n != smallest) row.energy_ratio_interval = shifted(*change->interval, 1);
    }
    out.push_back(std::move(row));
  }
  return out;
}

std::optional<EnergyRate> energy_rate(std::span<const Point> points) {
  if (points.empty()) return std::nullopt;
  std::vector<double> rates;
  double mean_log = 0;
  for (const auto& p : points) {
    if (!(p.x > 0) || !(p.y > 0)) return std::nullopt;
    rates.push_back(p.y / p.x);
    mean_log += std::log(p.y) / static_cast<double>(points.size());
  }
  const auto mean = mean_with_t(rates);
  EnergyRate out;
  out.runs = points.size();
  out.joules_per_gpu_hour = mean->value;
  out.mean_power_per_gpu_w = mean->value / 3600;
  out.interval = mean->interval;
  double error = 0, total = 0;
  for (const auto& p : points) {
    error += square(std::log(p.y / (mean->value * p.x)));
    total += square(std::log(p.y) - mean_log);
    out.largest_deviation = std::max(out.largest_deviation, std::abs(p.y / (mean->value * p.x) - 1));
  }
  if (total > 0) out.r_squared = std::clamp(1 - error / total, 0.0, 1.0);
  return out;
}

}  // namespace ergometer
