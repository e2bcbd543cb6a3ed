// What training and inference are asked to do. Filled by the command line, read by train.cpp and infer.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/data_set.hpp"
#include "core/runtime.hpp"
#include "steps/precision.hpp"

namespace ergometer::workload {

struct RunOptions {
  DataOptions data;  // `graphs` and `state` are filled in by training and inference
  RuntimeOptions runtime;
  Precision precision = Precision::fp32;
  bool graphs = false;                // record the work on the GPU once, replay it as one launch; CUDA only
  std::int64_t workers = 0;           // threads that load batches ahead; 0: the calling thread loads them
  std::int64_t warm_up = 0;           // steps or batches before the measured ones; they change no result
  bool validate = true;               // loss and accuracy over the validation data
  bool progress = false;              // a line on Console::notes that rewrites itself: for a terminal
  std::optional<std::int64_t> steps;  // at most so many an epoch; batches of inference
  std::string checkpoint;             // written by training, read by inference; empty: none
};

struct TrainOptions : RunOptions {
  std::int64_t epochs = 1;
  double learning_rate = 1e-3;
  std::optional<std::int64_t> validate_samples;  // validate on so many, evenly spaced, instead of all
  std::string resume;                            // checkpoint to go on from; empty: none
};

struct InferOptions : RunOptions {
  std::string output;  // predictions as CSV; empty: none
};

}  // namespace ergometer::workload
