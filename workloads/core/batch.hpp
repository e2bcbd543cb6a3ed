// One batch of a workload's samples as tensors. Made by a DataSet on the host, moved by the loader, read by a Task.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ergometer::workload {

// Which tensors there are, and what they mean, is between the workload's DataSet and its Task. All batches of one
// `shape` have the same number of tensors with the same sizes and types, so that a recorded CUDA graph fits them:
// what varies (atoms of molecules, broken pictures) is padded, and padding changes neither losses nor gradients.
struct Batch {
  std::vector<torch::Tensor> tensors;
  std::int64_t samples = 0;  // images, sequences, molecules or windows that count; padding does not
  std::int64_t tokens = 0;   // of language, otherwise 0
  std::size_t shape = 0;     // index of the static shape, from 0
  std::int64_t skipped = 0;  // samples that could not be read; their place is padding
};

}  // namespace ergometer::workload
