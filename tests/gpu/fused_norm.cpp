// The fused normalisation beside PyTorch's own operators in fp64, on a GPU: results, gradients and running statistics
// of every number format, with and without residual and activation, and that the same input gives the same bits. Exit 1
// if anything is too far.
#include <fmt/format.h>
#include <torch/torch.h>

#include <array>
#include <vector>

#include "vision/fused_norm.hpp"

namespace {

namespace vision = ergometer::workload::vision;
using torch::Tensor;

struct Case {
  std::int64_t batch, channels, side;
};

struct Results {
  Tensor y, dx, dweight, dbias, dresidual, mean, variance;
  [[nodiscard]] std::vector<std::pair<const char*, Tensor>> named() const {
    return {{"output", y},
            {"input gradient", dx},
            {"weight gradient", dweight},
            {"bias gradient", dbias},
            {"residual gradient", dresidual},
            {"running mean", mean},
            {"running variance", variance}};
  }
};

Tensor leaf(const Tensor& t) { return t.detach().clone(torch::MemoryFormat::Preserve).requires_grad_(); }

Results compute(const Tensor& input, const Tensor& given_residual, const Tensor& weight, const Tensor& bias,
                const Tensor& dy, bool relu, bool fused) {
  torch::nn::BatchNorm2d norm(input.size(1));
  norm->to(input.device());
  if (!fused) norm->to(torch::kFloat64);
  {
    const torch::NoGradGuard guard;
    norm->weight.copy_(weight);
    norm->bias.copy_(bias);
  }
  const Tensor x = leaf(input);
  const Tensor residual = given_residual.defined() ? leaf(given_residual) : Tensor();
  Tensor y;
  if (fused) {
    TORCH_CHECK(vision::can_fuse_norm(*norm, x, residual), "not fused");
    y = vision::fused_norm(*norm, x, relu, residual);
  } else {
    y = norm->forward(x);
    if (residual.defined()) y = y + residual;
    if (relu) y = y.relu();
  }
  y.backward(dy.to(y.scalar_type()));
  TORCH_CHECK(norm->num_batches_tracked.item<std::int64_t>() == 1, "batches were not counted");
  return {y.detach(),
          x.grad(),
          norm->weight.grad(),
          norm->bias.grad(),
          residual.defined() ? residual.grad() : Tensor(),
          norm->running_mean,
          norm->running_var};
}

// Largest difference over the largest value.
double distance(const Tensor& ours, const Tensor& expected) {
  const Tensor e = expected.to(torch::kFloat64);
  return ((ours.to(torch::kFloat64) - e).abs().max() / e.abs().max().clamp_min(1e-30)).item<double>();
}

bool check(const Case& c, torch::ScalarType type, bool relu, bool with_residual) {
  const auto options = torch::TensorOptions().device(torch::kCUDA);
  const auto picture = [&] {
    return torch::randn({c.batch, c.channels, c.side, c.side}, options)
        .to(type)
        .contiguous(torch::MemoryFormat::ChannelsLast);
  };
  const Tensor x = (picture() * 2 + 3).to(type).contiguous(torch::MemoryFormat::ChannelsLast);
  const Tensor residual = with_residual ? picture() : Tensor();
  const Tensor dy = picture();
  const Tensor weight = torch::rand({c.channels}, options) + 0.5, bias = torch::randn({c.channels}, options);
  const auto wide = [](const Tensor& t) { return t.defined() ? t.to(torch::kFloat64) : t; };
  const Results expected = compute(wide(x), wide(residual), wide(weight), wide(bias), wide(dy), relu, false);
  const Results ours = compute(x, residual, weight, bias, dy, relu, true);
  const Results again = compute(x, residual, weight, bias, dy, relu, true);
  const double rounding = type == torch::kFloat32 ? 2e-6 : type == torch::kFloat16 ? 1e-3 : 4e-3;
  bool near = true, same = true;
  std::string line;
  const auto a = ours.named(), b = expected.named(), d = again.named();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].second.defined()) continue;
    const double far = distance(a[i].second, b[i].second);
    // The parameters' gradients are in fp32 whatever the format of the pictures.
    const bool wide_sum = a[i].second.scalar_type() == torch::kFloat32;
    near = near && far <= (wide_sum ? 5e-5 : rounding);
    same = same && torch::equal(a[i].second, d[i].second);
    line += fmt::format(" {:.1e}", far);
  }
  fmt::print("{} {:>4} x {:>4} x {:>3}^2 relu {} residual {}:{}{}{}\n", torch::toString(type), c.batch, c.channels,
             c.side, relu ? 1 : 0, with_residual ? 1 : 0, line, near ? "" : "  TOO FAR",
             same ? "" : "  NOT THE SAME TWICE");
  return near && same;
}

}  // namespace

int main() {
  torch::manual_seed(1);
  bool good = true;
  for (const Case& c : {Case{3, 8, 2}, Case{3, 80, 7}, Case{5, 64, 56}, Case{2, 2048, 7}, Case{4, 192, 35}})
    for (const auto type : {torch::kFloat32, torch::kFloat16, torch::kBFloat16})
      for (const bool relu : {false, true})
        for (const bool residual : {false, true}) good = check(c, type, relu, residual) && good;
  fmt::print("{}\n", good ? "all near" : "FAILED");
  return good ? 0 : 1;
}
