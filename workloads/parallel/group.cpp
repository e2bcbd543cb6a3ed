#include "parallel/group.hpp"

#include <fmt/format.h>

#include <exception>

#include "parallel/communicator.hpp"
#include "parallel/gradient_buckets.hpp"
#include "parallel/rendezvous.hpp"

namespace ergometer::workload {
namespace {

constexpr std::int64_t kBroadcastBytes = 25 << 20;  // of one operation

class Alone : public Group {
 public:
  explicit Alone(Rank rank) : rank_(std::move(rank)) {}
  const Rank& rank() const override { return rank_; }
  Result<Done> broadcast(const std::vector<torch::Tensor>& tensors) override {
    static_cast<void>(tensors);
    return Done{};
  }
  Result<Done> average_gradients_of(const std::vector<torch::Tensor>& parameters) override {
    static_cast<void>(parameters);
    return Done{};
  }
  Result<Done> finish_gradients() override { return Done{}; }
  Result<std::vector<double>> sum(const std::vector<double>& values) override { return values; }

 private:
  Rank rank_;
};

class Several : public Group {
 public:
  Several(Rank rank, const torch::Device& device, Met met, CommunicatorPtr communicator)
      : rank_(std::move(rank)),
        device_(device),
        store_(std::move(met.store)),
        peers_(std::move(met.peers)),
        communicator_(std::move(communicator)) {}

  // Closing the connections would wait for operations that will never end if a rank was lost.
  ~Several() override {
    if (!broken_) return;
    static_cast<void>(new std::shared_ptr<GradientBuckets>(std::move(buckets_)));
    static_cast<void>(communicator_.release());
  }

  const Rank& rank() const override { return rank_; }

  Result<Done> broadcast(const std::vector<torch::Tensor>& tensors) override {
    return guarded([&] {
      const torch::NoGradGuard no_gradient;
      std::vector<torch::Tensor> part;
      std::int64_t bytes = 0;
      const auto send = [&] {
        if (!part.empty()) broadcast_part(part);
        part.clear();
        bytes = 0;
      };
      for (const torch::Tensor& tensor : tensors) {
        if (!part.empty() && part.front().scalar_type() != tensor.scalar_type()) send();
        part.push_back(tensor);
        bytes += tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
        if (bytes >= kBroadcastBytes) send();
      }
      send();
    });
  }

  Result<Done> average_gradients_of(const std::vector<torch::Tensor>& parameters) override {
    return guarded([&] { buckets_ = GradientBuckets::make(parameters, communicator_, rank_.size); });
  }

  Result<Done> finish_gradients() override {
    return guarded([&] {
      if (buckets_) buckets_->finish();
    });
  }

  Result<std::vector<double>> sum(const std::vector<double>& values) override {
    std::vector<double> sums(values.size());
    auto done = guarded([&] {
      std::vector<torch::Tensor> tensors = {torch::tensor(values, torch::kFloat64).to(device_)};
      communicator_->allreduce(tensors)->wait();
      const torch::Tensor host = tensors.front().cpu();
      std::copy_n(host.data_ptr<double>(), sums.size(), sums.begin());
    });
    if (!done) return done.error();
    return sums;
  }

 private:
  // Tensors of one type as one operation, whatever their memory layouts.
  void broadcast_part(const std::vector<torch::Tensor>& tensors) {
    std::vector<torch::Tensor> flat;
    for (const torch::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
    std::vector<torch::Tensor> message = {torch::cat(flat)};
    communicator_->broadcast(message)->wait();
    std::int64_t offset = 0;
    for (torch::Tensor tensor : tensors) {
      tensor.copy_(message.front().narrow(0, offset, tensor.numel()).view(tensor.sizes()));
      offset += tensor.numel();
    }
  }

  template <class Work>
  Result<Done> guarded(Work&& work) {
    try {
      work();
      return Done{};
    } catch (const std::exception& error) {  // LibTorch's, Gloo's and NCCL's
      broken_ = true;
      return describe(error.what());
    }
  }

  Error describe(const std::string& text) const {
    const std::string reason = text.substr(0, text.find('\n'));
    const std::vector<int> lost = peers_.lost();
    if (lost.empty()) {
      return {Fault::data, fmt::format("rank {}: the other ranks cannot be reached: {}", rank_.rank, reason),
              "see what the other ranks said, and check the network between them"};
    }
    return {Fault::data, fmt::format("rank {} lost {}: {}", rank_.rank, peers_.describe(lost), reason),
            "see what the lost rank said, or the launcher about it; the machine may have run out of memory"};
  }

  Rank rank_;
  torch::Device device_;
  StorePtr store_;  // outlives the connections that were made by it
  Peers peers_;
  CommunicatorPtr communicator_;
  std::shared_ptr<GradientBuckets> buckets_;
  bool broken_ = false;
};

}  // namespace

Result<std::unique_ptr<Group>> Group::join(const Rank& rank, const torch::Device& device, double timeout_s) {
  if (rank.size == 1) return std::unique_ptr<Group>(std::make_unique<Alone>(rank));
  auto met = meet(rank, timeout_s);
  if (!met) return met.error();
  try {
    auto communicator =
        device.is_cuda() ? connect_nccl(met->store, rank) : connect_gloo(met->store, rank, met->peers.one_machine());
    if (!communicator) return communicator.error();
    return std::unique_ptr<Group>(std::make_unique<Several>(rank, device, std::move(*met), std::move(*communicator)));
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    return Error{
        Fault::data,
        fmt::format("rank {} cannot connect to the other ranks: {}", rank.rank, reason.substr(0, reason.find('\n'))),
        "check the network between the machines; GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME names the interface"};
  }
}

}  // namespace ergometer::workload
