#include "engine/loader.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <omp.h>

#include <chrono>
#include <exception>

#include "core/runtime.hpp"

namespace ergometer::workload {
namespace {

constexpr std::size_t kSyntheticBatches = 4;

Result<Batch> load_guarded(const DataSet& data, const PlannedBatch& planned) {
  try {
    return data.load(planned.samples, planned.seed);
  } catch (const c10::Error& error) {
    return Error{Fault::data, fmt::format("a batch could not be loaded: {}", brief(error)), {}};
  } catch (const std::exception& error) {
    return Error{Fault::data, fmt::format("a batch could not be loaded: {}", error.what()), {}};
  }
}

}  // namespace

void Loader::begin(std::vector<PlannedBatch> plan) {
  stop();
  plan_ = std::move(plan);
  taken_ = 0;
  waited_s_ = 0;
  if (options_.synthetic) return;
  claimed_ = 0;
  stopping_ = false;
  const auto workers = static_cast<std::size_t>(options_.workers);
  slots_.assign(2 * workers, std::nullopt);
  for (std::size_t i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
}

Result<std::optional<Batch>> Loader::next() {
  const auto begin = std::chrono::steady_clock::now();
  auto batch = take_next();
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return batch;
}

Result<std::optional<Batch>> Loader::take_next() {
  if (taken_ == plan_.size()) return std::optional<Batch>();
  if (options_.synthetic) return next_synthetic();
  std::optional<Result<Batch>> batch;
  if (threads_.empty()) {
    batch = load(taken_++);
  } else {
    std::unique_lock lock(mutex_);
    auto& slot = slots_[taken_ % slots_.size()];
    loaded_.wait(lock, [&] { return slot.has_value(); });
    batch = std::move(slot);
    slot.reset();
    ++taken_;
    room_.notify_one();
  }
  if (!*batch) return batch->error();
  return std::optional<Batch>(std::move(**batch));
}

// A partial batch at the end does not fit the kept ones and is loaded as it is.
Result<std::optional<Batch>> Loader::next_synthetic() {
  const std::size_t number = taken_++;
  const std::size_t place = number % kSyntheticBatches;
  const bool whole = plan_[number].samples.size() == plan_.front().samples.size();
  if (whole && place < kept_.size() &&
      kept_[place].samples == static_cast<std::int64_t>(plan_[number].samples.size())) {
    return std::optional<Batch>(kept_[place]);
  }
  auto batch = load(number);
  if (!batch) return batch.error();
  Batch moved = to_device(std::move(*batch));
  if (whole && place == kept_.size()) kept_.push_back(moved);
  return std::optional<Batch>(std::move(moved));
}

Result<Batch> Loader::load(std::size_t number) const {
  auto batch = load_guarded(data_, plan_[number]);
  if (!batch || !options_.device.is_cuda()) return batch;
  try {
    for (torch::Tensor& tensor : batch->tensors) tensor = tensor.pin_memory();
  } catch (const c10::Error& error) {
    return Error{Fault::data, fmt::format("no page-locked memory for a batch: {}", brief(error)),
                 "lower --batch or --workers"};
  }
  return batch;
}

Batch Loader::to_device(Batch batch) const {
  if (options_.device.is_cpu()) return batch;
  for (torch::Tensor& tensor : batch.tensors) {
    tensor = tensor.to(options_.device, /*non_blocking=*/true);
    if (options_.channels_last && tensor.dim() == 4) tensor = tensor.contiguous(torch::MemoryFormat::ChannelsLast);
  }
  return batch;
}

void Loader::work() {
  // Threads load beside each other; tensor operators inside them shall not start more. LibTorch sets its own number
  // for this thread when first asked, which must come before.
  at::get_num_threads();
  omp_set_num_threads(1);
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [&] { return stopping_ || claimed_ == plan_.size() || claimed_ < taken_ + slots_.size(); });
    if (stopping_ || claimed_ == plan_.size()) return;
    const std::size_t number = claimed_++;
    lock.unlock();
    auto batch = load(number);
    lock.lock();
    slots_[number % slots_.size()] = std::move(batch);
    loaded_.notify_one();
    if (claimed_ == plan_.size()) room_.notify_all();
  }
}

void Loader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace ergometer::workload
