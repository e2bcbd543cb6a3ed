#include "molecules/networks/basis.hpp"

#include <cmath>

namespace ergometer::workload::molecules {
namespace {

// The zero of j_order between `low` and `high`, where its signs differ.
double bisect(std::int64_t order, double low, double high) {
  const bool rises = spherical_bessel(order, low) < 0;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    ((spherical_bessel(order, middle) < 0) == rises ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

// Upwards from j_0 and j_1 (Abramowitz and Stegun 10.1.19).
double spherical_bessel(std::int64_t order, double x) {
  double before = std::sin(x) / x;
  if (order == 0) return before;
  double value = (before - std::cos(x)) / x;
  for (std::int64_t n = 1; n < order; ++n) {
    const double next = static_cast<double>(2 * n + 1) / x * value - before;
    before = value;
    value = next;
  }
  return value;
}

std::vector<std::vector<double>> spherical_bessel_zeros(std::int64_t orders, std::int64_t count) {
  std::vector<std::vector<double>> zeros;
  std::vector<double> row;
  for (std::int64_t n = 1; n < count + orders; ++n) row.push_back(static_cast<double>(n) * M_PI);
  for (std::int64_t order = 0; order < orders; ++order) {
    if (order > 0) {
      for (std::size_t i = 0; i + 1 < row.size(); ++i) row[i] = bisect(order, row[i], row[i + 1]);
      row.pop_back();
    }
    zeros.emplace_back(row.begin(), row.begin() + count);
  }
  return zeros;
}

torch::Tensor envelope(const torch::Tensor& x) {
  constexpr double p = 6;
  constexpr double a = -(p + 1) * (p + 2) / 2;
  constexpr double b = p * (p + 2);
  constexpr double c = -p * (p + 1) / 2;
  const torch::Tensor squared = x * x;
  const torch::Tensor polynomial = squared * squared * x * (a + x * (b + c * x));
  return (x.reciprocal() + polynomial) * (x < 1).to(x.scalar_type());
}

RadialBasisImpl::RadialBasisImpl(std::int64_t count, double cutoff_)
    : freq(register_parameter("freq", torch::arange(1, count + 1, torch::kFloat32) * M_PI)), cutoff(cutoff_) {}

torch::Tensor RadialBasisImpl::forward(const torch::Tensor& distance) {
  const torch::Tensor x = (distance / cutoff).unsqueeze(1);
  return envelope(x) * torch::sin(freq * x);
}

SphericalBasisImpl::SphericalBasisImpl(std::int64_t orders, std::int64_t count, double cutoff_)
    : zeros(torch::empty({orders, count}, torch::kFloat64)),
      scales(torch::empty({orders, count}, torch::kFloat64)),
      cutoff(cutoff_) {
  const auto rows = spherical_bessel_zeros(orders, count);
  for (std::int64_t l = 0; l < orders; ++l) {
    for (std::int64_t n = 0; n < count; ++n) {
      const double zero = rows[static_cast<std::size_t>(l)][static_cast<std::size_t>(n)];
      zeros[l][n] = zero;
      scales[l][n] = std::sqrt(2.0) / std::fabs(spherical_bessel(l + 1, zero));
    }
  }
  register_buffer("zeros", zeros);
  register_buffer("scales", scales);
}

torch::Tensor SphericalBasisImpl::radial(const torch::Tensor& distance) {
  const torch::Tensor x = (distance.to(torch::kFloat64) / cutoff).view({-1, 1, 1});
  const torch::Tensor argument = zeros * x;
  const torch::Tensor inverse = argument.reciprocal();
  // The recurrence runs over the zeros of all orders; of step l only those of order l are kept.
  torch::Tensor before = torch::sin(argument) * inverse;
  torch::Tensor value = (before - torch::cos(argument)) * inverse;
  std::vector<torch::Tensor> orders = {before.narrow(1, 0, 1)};
  for (std::int64_t l = 1; l < zeros.size(0); ++l) {
    orders.push_back(value.narrow(1, l, 1));
    const torch::Tensor next = static_cast<double>(2 * l + 1) * inverse * value - before;
    before = value;
    value = next;
  }
  return (torch::cat(orders, 1) * scales * envelope(x)).to(torch::kFloat32);
}

// (l + 1) P_(l+1) = (2l + 1) x P_l - l P_(l-1).
torch::Tensor SphericalBasisImpl::angular(const torch::Tensor& cosine) const {
  torch::Tensor before = torch::ones_like(cosine);
  torch::Tensor value = cosine;
  std::vector<torch::Tensor> orders;
  for (std::int64_t l = 0; l < zeros.size(0); ++l) {
    const auto order = static_cast<double>(l);
    orders.push_back(before * std::sqrt((2 * order + 1) / (4 * M_PI)));
    const torch::Tensor next = ((2 * order + 3) * cosine * value - (order + 1) * before) / (order + 2);
    before = value;
    value = next;
  }
  return torch::stack(orders, 1);
}

}  // namespace ergometer::workload::molecules
