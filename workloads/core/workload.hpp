// What a workload is to the program: facts to list, and the functions that make its parts. Used by the registry and by
// training and inference; each network's folder defines one or more.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "core/data_set.hpp"
#include "core/result.hpp"
#include "core/task.hpp"

namespace ergometer::workload {

// Where a command writes: its results, and notes on what it left out.
struct Console {
  std::ostream& out;
  std::ostream& notes;
};

enum class Rule { sgd, adam };

// Update rule and schedule of the source.
struct OptimiserFacts {
  Rule rule = Rule::adam;
  double learning_rate = 1e-3;
  double momentum = 0;  // sgd
  bool nesterov = false;
  double weight_decay = 0;
  bool decoupled_decay = false;  // adam: weight decay as in AdamW
  bool cosine = false;           // learning rate falls to 0 over the epochs along half a cosine
};

struct MakeDataOptions {
  std::string folder;
  std::int64_t count = 0;  // samples (cities for load_lstm) to write; 0: the workload's default
  std::uint64_t seed = 42;
};

// How the results of inference are written (`infer --output`): a header, then one row a sample in order.
class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;
  virtual Result<Done> write(const std::vector<std::int64_t>& samples, const torch::Tensor& predictions) = 0;
  virtual Result<Done> close() = 0;
};

struct Workload {
  std::string_view name;
  std::string_view domain;    // "vision", "language", ...
  std::string_view data_set;  // name and format
  std::string_view unit;      // plural of a sample: "images", "sequences", "molecules", "windows"
  std::string_view input;     // of one sample: "3x224x224", "512 tokens"
  std::int64_t parameters = 0;  // trainable
  std::int64_t batch = 1;       // defaults of the source; batch is per rank
  std::int64_t epochs = 1;
  OptimiserFacts optimiser;
  std::string_view source;        // of the architecture
  bool channels_last = false;     // 4-dimensional inputs and weights are laid out so on CUDA
  std::unique_ptr<Task> (*make_task)(const DataOptions& options) = nullptr;
  // options.folder "synthetic" gives random samples in the same shapes. Errors name file and line.
  Result<std::unique_ptr<DataSet>> (*open_data)(const DataOptions& options, Split split) = nullptr;
  Result<Done> (*make_data)(const MakeDataOptions& options, Console console) = nullptr;
  // nullptr: predictions are not written. `data` is the validation set and outlives the writer.
  Result<std::unique_ptr<PredictionWriter>> (*write_predictions)(const std::string& path, const DataSet& data) = nullptr;
};

}  // namespace ergometer::workload
