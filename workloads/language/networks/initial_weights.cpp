#include "language/networks/initial_weights.hpp"

namespace ergometer::workload::language {

void set_initial_weights(torch::nn::Module& network) {
  constexpr double kDeviation = 0.02;
  const torch::NoGradGuard no_gradient;
  for (const auto& module : network.modules(/*include_self=*/false)) {
    if (auto* linear = module->as<torch::nn::LinearImpl>()) {
      linear->weight.normal_(0.0, kDeviation);
      linear->bias.zero_();
    } else if (auto* embedding = module->as<torch::nn::EmbeddingImpl>()) {
      embedding->weight.normal_(0.0, kDeviation);
      if (const auto padding = embedding->options.padding_idx()) embedding->weight[*padding].zero_();
    }
  }
}

}  // namespace ergometer::workload::language
