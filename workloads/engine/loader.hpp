// Batches of a data set in a planned order, loaded ahead by threads. Used by training, validation and inference.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/data_set.hpp"
#include "engine/plan.hpp"

namespace ergometer::workload {

struct LoaderOptions {
  std::int64_t workers = 0;  // 0: next() loads
  torch::Device device = torch::kCPU;
  bool channels_last = false;  // of 4-dimensional tensors on CUDA
  // Random samples: a few batches are loaded once, stay on the device and take turns, so that loading costs nothing.
  bool synthetic = false;
};

// Used by one thread. The batches and their order do not depend on the number of workers.
class Loader {
 public:
  // `data` outlives it.
  Loader(const DataSet& data, const LoaderOptions& options) : data_(data), options_(options) {}
  ~Loader() { stop(); }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Starts a pass over `plan`; what is left of the former one is dropped. Threads begin to load, each whole batches, at
  // most twice their number ahead.
  void begin(std::vector<PlannedBatch> plan);
  // The next batch: in host memory (for CUDA page-locked), or on the device if synthetic; nothing at the end. An error
  // comes at the place of its batch.
  Result<std::optional<Batch>> next();
  // The batch on the device. The copy is ordered in the current stream and not waited for.
  Batch to_device(Batch batch) const;
  // Seconds that next() took since begin(): the host waited for data, the device perhaps not yet.
  double waited_s() const { return waited_s_; }

 private:
  Result<Batch> load(std::size_t number) const;
  Result<std::optional<Batch>> take_next();
  Result<std::optional<Batch>> next_synthetic();
  void work();
  void stop();

  const DataSet& data_;
  const LoaderOptions options_;
  std::vector<PlannedBatch> plan_;
  std::size_t taken_ = 0;    // batches that next() has handed out
  std::vector<Batch> kept_;  // on the device, if synthetic
  double waited_s_ = 0;

  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards what follows, and taken_ while threads run
  std::condition_variable loaded_;
  std::condition_variable room_;
  std::vector<std::optional<Result<Batch>>> slots_;  // batch n waits in slot n modulo their number
  std::size_t claimed_ = 0;
  bool stopping_ = false;
};

}  // namespace ergometer::workload
