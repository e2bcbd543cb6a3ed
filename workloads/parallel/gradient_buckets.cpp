#include "parallel/gradient_buckets.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>

// Hooks on parameters rather than on their accumulation nodes: since LibTorch 2.1. They let the nodes be made anew by
// each pass, on its stream, as recorded CUDA graphs need.
#define ERGOMETER_PARAMETER_HOOKS (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1))

namespace ergometer::workload {
namespace {

// The first bucket is small so that sending starts early; both sizes are those of PyTorch's DistributedDataParallel.
constexpr std::int64_t kFirstBucketBytes = 1 << 20;
constexpr std::int64_t kBucketBytes = 25 << 20;
// Gradients start at multiples of 64 bytes (of fp32), for vector instructions.
constexpr std::int64_t kAlignment = 16;

std::int64_t bytes(const torch::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

std::int64_t aligned(std::int64_t count) { return (count + kAlignment - 1) / kAlignment * kAlignment; }

// A part of `flat` in the parameter's sizes and, as autograd wants it, in its memory layout.
torch::Tensor view_like(const torch::Tensor& parameter, const torch::Tensor& flat, std::int64_t offset) {
  if (parameter.is_non_overlapping_and_dense()) {
    return flat.as_strided(parameter.sizes(), parameter.strides(), offset);
  }
  return flat.narrow(0, offset, parameter.numel()).view(parameter.sizes());
}

#if ERGOMETER_PARAMETER_HOOKS
class ReadyHook : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit ReadyHook(std::function<void()> ready) : ready_(std::move(ready)) {}
  void operator()(const torch::Tensor& parameter) override {
    static_cast<void>(parameter);
    ready_();
  }

 private:
  std::function<void()> ready_;
};
#else
class ReadyHook : public torch::autograd::FunctionPostHook {
 public:
  explicit ReadyHook(std::function<void()> ready) : ready_(std::move(ready)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list& inputs) override {
    static_cast<void>(inputs);
    ready_();
    return outputs;
  }

 private:
  std::function<void()> ready_;
};
#endif

}  // namespace

std::shared_ptr<GradientBuckets> GradientBuckets::make(const std::vector<torch::Tensor>& parameters,
                                                       CommunicatorPtr communicator, int ranks) {
  const torch::NoGradGuard no_gradient;
  const std::shared_ptr<GradientBuckets> made(new GradientBuckets(std::move(communicator), ranks));
  std::vector<torch::Tensor> members;
  std::int64_t size = 0;
  const auto close = [&] {
    if (!members.empty()) made->add_bucket(members);
    members.clear();
    size = 0;
  };
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    if (!parameter->requires_grad()) continue;
    if (!members.empty() && members.front().scalar_type() != parameter->scalar_type()) close();
    members.push_back(*parameter);
    size += bytes(*parameter);
    if (size >= (made->buckets_.empty() ? kFirstBucketBytes : kBucketBytes)) close();
  }
  close();
  return made;
}

void GradientBuckets::add_bucket(const std::vector<torch::Tensor>& members) {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : members) count += aligned(parameter.numel());
  Bucket bucket;
  bucket.flat = torch::zeros({count}, members.front().options().requires_grad(false));
  bucket.members = bucket.missing = members.size();
  std::int64_t offset = 0;
  for (const torch::Tensor& parameter : members) {
    parameter.mutable_grad() = view_like(parameter, bucket.flat, offset);
    offset += aligned(parameter.numel());
    watch(parameter, buckets_.size());
  }
  buckets_.push_back(std::move(bucket));
}

void GradientBuckets::watch(const torch::Tensor& parameter, std::size_t bucket) {
  auto hook = std::make_unique<ReadyHook>([weak = weak_from_this(), bucket] {
    if (const auto self = weak.lock()) self->ready(bucket);
  });
#if ERGOMETER_PARAMETER_HOOKS
  torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::move(hook));
#else
  auto accumulator = torch::autograd::impl::grad_accumulator(parameter);
  accumulator->add_post_hook(std::move(hook));
  accumulators_.push_back(std::move(accumulator));
#endif
}

void GradientBuckets::ready(std::size_t bucket) {
  if (buckets_[bucket].missing > 0) --buckets_[bucket].missing;
  try {
    while (!failure_ && next_ < buckets_.size() && buckets_[next_].missing == 0) send(buckets_[next_]);
  } catch (...) {  // not through autograd, which would bury it
    failure_ = std::current_exception();
  }
}

// Divides before the sum, which then cannot overflow where the average does not.
void GradientBuckets::send(Bucket& bucket) {
  const torch::NoGradGuard no_gradient;
  ++next_;
  bucket.flat.div_(ranks_);
  std::vector<torch::Tensor> tensors = {bucket.flat};
  bucket.work = communicator_->allreduce(tensors);
}

void GradientBuckets::finish() {
  if (failure_) std::rethrow_exception(failure_);
  while (next_ < buckets_.size()) send(buckets_[next_]);
  for (Bucket& bucket : buckets_) {
    bucket.work->wait();
    bucket.work.reset();
    bucket.missing = bucket.members;
  }
  next_ = 0;
}

}  // namespace ergometer::workload
