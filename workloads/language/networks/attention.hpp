// Multi-head attention on projected queries, keys and values. Used by both networks.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace ergometer::workload::language {

// softmax(Q K^T / sqrt(d)) V by head, without a mask; `dropout` is the share of attention weights that are dropped.
// All tensors are [B, S, heads * d]. From LibTorch 2.0 on one fused operator.
[[nodiscard]] torch::Tensor attend(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
                                   std::int64_t heads, double dropout);

// The layer's dropout rate in training, otherwise 0.
[[nodiscard]] double rate_now(const torch::nn::Dropout& dropout);

}  // namespace ergometer::workload::language
