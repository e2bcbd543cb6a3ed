// Averages gradients over ranks in buckets that are sent while the backward pass still runs (Li et al. 2020, "PyTorch
// Distributed: Experiences on Accelerating Data Parallel Training", arXiv:2006.15704). Our own and not c10d's Reducer,
// whose header Debian's LibTorch 1.13 cannot compile. Used by group.cpp.
#pragma once

#include <torch/torch.h>

#include <exception>
#include <memory>
#include <vector>

#include "parallel/communicator.hpp"

namespace ergometer::workload {

class GradientBuckets : public std::enable_shared_from_this<GradientBuckets> {
 public:
  // Gives each parameter that wants one a gradient of 0 in a bucket's memory, laid out as the parameter. The hooks on
  // the parameters do nothing once the buckets are gone.
  static std::shared_ptr<GradientBuckets> make(const std::vector<torch::Tensor>& parameters,
                                               CommunicatorPtr communicator, int ranks);

  // Sends what the pass did not fill and waits for all; throws what c10d threw, here or during the pass.
  void finish();

 private:
  struct Bucket {
    torch::Tensor flat;       // contiguous
    std::size_t members = 0;  // parameters
    std::size_t missing = 0;  // of this pass
    c10::intrusive_ptr<c10d::Work> work;
  };

  GradientBuckets(CommunicatorPtr communicator, int ranks) : communicator_(std::move(communicator)), ranks_(ranks) {}
  void add_bucket(const std::vector<torch::Tensor>& members);
  void watch(const torch::Tensor& parameter, std::size_t bucket);
  // A gradient of this bucket is complete. Called by autograd's thread, during the pass.
  void ready(std::size_t bucket);
  void send(Bucket& bucket);

  CommunicatorPtr communicator_;
  int ranks_;
  std::vector<Bucket> buckets_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;  // hold the hooks, before LibTorch 2.1
  std::size_t next_ = 0;        // bucket to send: the ranks must all send them in this order
  std::exception_ptr failure_;  // of this pass
};

}  // namespace ergometer::workload
