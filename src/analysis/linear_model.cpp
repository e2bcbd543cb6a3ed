#include "analysis/linear_model.hpp"

#include <cmath>

#include "analysis/arithmetic.hpp"

namespace ergometer {
namespace {

constexpr double kDependent = 1e-9;  // of a column's length; what is left then is rounding

double dot_product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Gauss elimination with the largest pivot, of the symmetric positive definite system a x = b.
std::vector<double> solve_small(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

}  // namespace

bool LinearModel::add_term(const std::vector<std::vector<double>>& columns) {
  const std::size_t before = q_.size();
  for (const auto& column : columns) {
    std::vector<double> v = column;
    std::vector<double> r(q_.size() + 1, 0.0);
    const double length = std::sqrt(dot_product(v, v));
    // Twice, since one pass of Gram-Schmidt leaves what rounding makes of nearly dependent columns.
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < q_.size(); ++j) {
        const double part = dot_product(q_[j], v);
        r[j] += part;
        for (std::size_t i = 0; i < rows_; ++i) v[i] -= part * q_[j][i];
      }
    }
    const double left = std::sqrt(dot_product(v, v));
    if (!(left > kDependent * length)) {
      q_.resize(before);
      r_.resize(before);
      return false;
    }
    r.back() = left;
    for (double& x : v) x /= left;
    q_.push_back(std::move(v));
    r_.push_back(std::move(r));
  }
  return true;
}

void LinearModel::solve(const std::vector<double>& y) {
  const std::size_t p = q_.size();
  residuals_ = y;
  beta_.assign(p, 0.0);
  for (std::size_t j = 0; j < p; ++j) {
    beta_[j] = dot_product(q_[j], residuals_);
    for (std::size_t i = 0; i < rows_; ++i) residuals_[i] -= beta_[j] * q_[j][i];
  }
  for (std::size_t k = p; k-- > 0;) {
    beta_[k] /= r_[k][k];
    for (std::size_t i = 0; i < k; ++i) beta_[i] -= r_[k][i] * beta_[k];
  }
  inverse_.assign(p, {});
  for (std::size_t j = 0; j < p; ++j) {
    auto& x = inverse_[j];
    x.assign(j + 1, 0.0);
    x[j] = 1;
    for (std::size_t k = j + 1; k-- > 0;) {
      x[k] /= r_[k][k];
      for (std::size_t i = 0; i < k; ++i) x[i] -= r_[k][i] * x[k];
    }
  }
}

double LinearModel::variance_of(std::size_t first, const std::vector<double>& combination) const {
  // (X^T X)^-1 = R^-1 R^-T, so the variance is the squared length of R^-T c.
  double sum = 0;
  for (std::size_t j = first; j < inverse_.size(); ++j) {
    double part = 0;
    for (std::size_t k = 0; k < combination.size() && first + k <= j; ++k)
      part += combination[k] * inverse_[j][first + k];
    sum += square(part);
  }
  return sum;
}

double LinearModel::squares_of(std::size_t first, std::size_t count) const {
  std::vector<std::vector<double>> block(count, std::vector<double>(count, 0.0));
  for (std::size_t j = first; j < inverse_.size(); ++j)
    for (std::size_t a = 0; a < count && first + a <= j; ++a)
      for (std::size_t b = 0; b < count && first + b <= j; ++b)
        block[a][b] += inverse_[j][first + a] * inverse_[j][first + b];
  const std::vector<double> part(beta_.begin() + static_cast<std::ptrdiff_t>(first),
                                 beta_.begin() + static_cast<std::ptrdiff_t>(first + count));
  return dot_product(part, solve_small(std::move(block), part));
}

}  // namespace ergometer
