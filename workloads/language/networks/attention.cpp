#include "language/networks/attention.hpp"

#include <torch/version.h>

#if TORCH_VERSION_MAJOR < 2
#include <cmath>
#endif

namespace ergometer::workload::language {
namespace {

// [B, S, heads * d] to [B, heads, S, d]; no copy.
torch::Tensor by_head(const torch::Tensor& tensor, std::int64_t heads) {
  return tensor.unflatten(2, {heads, tensor.size(2) / heads}).transpose(1, 2);
}

#if TORCH_VERSION_MAJOR >= 2
torch::Tensor product(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
                      double dropout) {
  return at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{}, dropout);
}
#else
torch::Tensor product(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
                      double dropout) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
  torch::Tensor weights = torch::softmax(torch::matmul(query * scale, key.transpose(-1, -2)), -1);
  if (dropout > 0) weights = torch::dropout(weights, dropout, /*train=*/true);
  return torch::matmul(weights, value);
}
#endif

}  // namespace

torch::Tensor attend(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
                     std::int64_t heads, double dropout) {
  return product(by_head(query, heads), by_head(key, heads), by_head(value, heads), dropout).transpose(1, 2).flatten(2);
}

double rate_now(const torch::nn::Dropout& dropout) { return dropout->is_training() ? dropout->options.p() : 0.0; }

}  // namespace ergometer::workload::language
