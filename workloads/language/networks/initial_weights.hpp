// Random weights of a network before training. Used by both networks.
#pragma once

#include <torch/torch.h>

namespace ergometer::workload::language {

// Weights of linear layers and embeddings from N(0, 0.02), biases 0, the embedding of padding 0, as in BERT (Devlin et
// al. 2018) and in transformers 5.17.
void set_initial_weights(torch::nn::Module& network);

}  // namespace ergometer::workload::language
