// DimeNet's basis functions of distances and angles (Gasteiger et al. 2020, arXiv:2003.03123): spherical Bessel
// functions and Legendre polynomials. Used by dimenet.cpp.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace ergometer::workload::molecules {

// j_n(x), the spherical Bessel function of the first kind, for x > 0 that is not far below n.
[[nodiscard]] double spherical_bessel(std::int64_t order, double x);

// The first `count` positive zeros of j_0 ... j_(orders-1), each a row. The zeros of one order lie between those of the
// order before.
[[nodiscard]] std::vector<std::vector<double>> spherical_bessel_zeros(std::int64_t orders, std::int64_t count);

// u(x) = 1/x + a x^(p-1) + b x^p + c x^(p+1) below 1, else 0, with p = 6: falls to 0 at 1 with two derivatives. The
// reference's Envelope of exponent 5.
[[nodiscard]] torch::Tensor envelope(const torch::Tensor& x);

// u(d/c) sin(f_n d/c): [E] to [E, count], with frequencies n pi that are trained.
struct RadialBasisImpl : torch::nn::Module {
  RadialBasisImpl(std::int64_t count, double cutoff);
  torch::Tensor forward(const torch::Tensor& distance);

  torch::Tensor freq;
  double cutoff;
};
TORCH_MODULE(RadialBasis);

// Products of radial functions j_l(z_ln d/c), normalised on the unit ball, and of spherical harmonics Y_l0.
// Computed by recurrence in fp64, where the reference evaluates closed forms in fp32 that lose most digits at short
// distances. The buffers `zeros` and `scales` (fp64) are not in the reference, which has them in its formulas.
struct SphericalBasisImpl : torch::nn::Module {
  SphericalBasisImpl(std::int64_t orders, std::int64_t count, double cutoff);
  // u(d/c) s_ln j_l(z_ln d/c): [E] to [E, orders, count], fp32.
  torch::Tensor radial(const torch::Tensor& distance);
  // sqrt((2l+1) / 4 pi) P_l(cosine): [T] to [T, orders].
  torch::Tensor angular(const torch::Tensor& cosine) const;

  torch::Tensor zeros;   // [orders, count]
  torch::Tensor scales;  // [orders, count]
  double cutoff;
};
TORCH_MODULE(SphericalBasis);

}  // namespace ergometer::workload::molecules
