// Least squares on columns that are added one after another; a column that the earlier ones already tell is refused. The
// solver behind effects_of.
#pragma once

#include <cstddef>
#include <vector>

namespace ergometer {

class LinearModel {
 public:
  explicit LinearModel(std::size_t rows) : rows_(rows) {}

  // All columns of a term, or none: false, and nothing is added, if one of them depends on those before it.
  bool add_term(const std::vector<std::vector<double>>& columns);
  [[nodiscard]] std::size_t size() const { return q_.size(); }

  // Coefficients of y, in the order of the columns.
  void solve(const std::vector<double>& y);
  [[nodiscard]] const std::vector<double>& coefficients() const { return beta_; }
  [[nodiscard]] const std::vector<double>& residuals() const { return residuals_; }
  // c^T (X^T X)^-1 c for a combination c of the columns first, first + 1, ...: its variance for a residual of 1.
  [[nodiscard]] double variance_of(std::size_t first, const std::vector<double>& combination) const;
  // Sum of squares that is lost if the columns first .. first + count - 1 are left out, the others fitted again.
  [[nodiscard]] double squares_of(std::size_t first, std::size_t count) const;

 private:
  std::size_t rows_;
  std::vector<std::vector<double>> q_;        // orthonormal columns
  std::vector<std::vector<double>> r_;        // r_[j]: column j of R, j + 1 numbers
  std::vector<std::vector<double>> inverse_;  // column j of R^-1, made by solve
  std::vector<double> beta_, residuals_;
};

}  // namespace ergometer
