// Small parts that the three networks share: sums by index, the Gaussian basis, and a random orthogonal start.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstdint>

namespace ergometer::workload::molecules {

// Row r of the result is the sum of the values whose index is r: [n, ...] to [rows, ...].
inline torch::Tensor sum_by(const torch::Tensor& values, const torch::Tensor& index, std::int64_t rows) {
  auto sizes = values.sizes().vec();
  sizes[0] = rows;
  return torch::zeros(sizes, values.options()).index_add(0, index, values);
}

// Values to their own rows, the others 0: [n, ...] to [rows, ...]. Its gradient is a gather, without atomic additions.
inline torch::Tensor place(const torch::Tensor& values, const torch::Tensor& index, std::int64_t rows) {
  auto sizes = values.sizes().vec();
  sizes[0] = rows;
  return torch::zeros(sizes, values.options()).index_copy(0, index, values);
}

// From target to source, [E, 3].
inline torch::Tensor edge_vectors(const torch::Tensor& positions, const torch::Tensor& source,
                                  const torch::Tensor& target) {
  return positions.index_select(0, source) - positions.index_select(0, target);
}

// exp(-(d - mu)^2 / (2 step^2)) for evenly spaced mu from 0 to `stop` (PyTorch Geometric's GaussianSmearing, whose
// buffer `offset` it has as well): [E] to [E, count].
struct GaussianBasisImpl : torch::nn::Module {
  GaussianBasisImpl(double stop, std::int64_t count)
      : offset(register_buffer("offset", torch::linspace(0, stop, count))),
        coefficient(-0.5 / std::pow(stop / static_cast<double>(count - 1), 2)) {}
  torch::Tensor forward(const torch::Tensor& distance) {
    return torch::exp(coefficient * torch::square(distance.unsqueeze(1) - offset));
  }

  torch::Tensor offset;
  double coefficient;
};
TORCH_MODULE(GaussianBasis);

// Random orthogonal, scaled to variance 2 / (rows + columns) (Gasteiger et al. 2020, DimeNet).
inline void glorot_orthogonal(torch::Tensor weight) {
  const torch::NoGradGuard no_gradient;
  torch::nn::init::orthogonal_(weight);
  weight.mul_((2.0 / (static_cast<double>(weight.size(-2) + weight.size(-1)) * weight.var())).sqrt());
}

}  // namespace ergometer::workload::molecules
