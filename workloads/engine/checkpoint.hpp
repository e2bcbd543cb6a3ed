// A training on disk: network, optimiser, and what a later training or inference must know. One dictionary in PyTorch's
// own file format: torch.load(FILE) reads it. Used by training and inference.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "engine/weights.hpp"

namespace ergometer::workload {

struct Checkpoint {
  std::string workload;
  std::int64_t epoch = 0;  // that are done
  std::string state;       // DataSet::state() of the training
  // Options that must be the same for a training to go on as if it had not stopped: name and value.
  std::vector<std::pair<std::string, std::string>> settings;
  NamedTensors network;  // on the CPU when loaded
  NamedTensors optimiser;
  NamedTensors scaler;  // of fp16's loss scale, otherwise none
};

// An error if `path` could not be written: asked before hours of training.
[[nodiscard]] Result<Done> check_writable(const std::string& path);

// Replaces the file as a whole: a reader sees the former or the new one.
[[nodiscard]] Result<Done> save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
// An error if it is no checkpoint, or another workload's.
[[nodiscard]] Result<Checkpoint> load_checkpoint(const std::string& path, std::string_view workload);

// Copies the checkpoint's network into this one; an error names the file.
[[nodiscard]] Result<Done> restore_network(const std::string& path, const Checkpoint& checkpoint,
                                           const torch::nn::Module& network);

}  // namespace ergometer::workload
