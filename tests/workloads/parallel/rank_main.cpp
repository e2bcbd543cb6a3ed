// One rank of the tests of groups: parallel_rank gradients FILE, or lose RANK; with --ranks N first, their launcher.
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "parallel/group.hpp"
#include "toy_network.hpp"

namespace {

using ergometer::test::make_toy;
using ergometer::test::toy_loss;
using ergometer::test::ToyNetwork;
using ergometer::workload::Error;
using ergometer::workload::Group;
using ergometer::workload::Rank;

constexpr int kLostOthers = 9;
constexpr std::int64_t kBatch = 3;  // a rank

int report(const Error& error) {
  std::cerr << error.message << "\nhint: " << error.hint << '\n';
  return kLostOthers;
}

void zero_gradients(ToyNetwork& network) {
  for (const torch::Tensor& parameter : network->parameters()) {
    if (parameter.grad().defined()) parameter.mutable_grad().zero_();
  }
}

// Two passes; rank 0 writes the second one's gradients to the file.
int gradients(const Rank& rank, const std::string& file) {
  auto group = Group::join(rank, torch::kCPU, 30);
  if (!group) return report(group.error());
  ToyNetwork network = make_toy(static_cast<std::uint64_t>(100 + rank.rank));
  if (auto sent = (*group)->broadcast(network->parameters()); !sent) return report(sent.error());
  if (auto set = (*group)->average_gradients_of(network->parameters()); !set) return report(set.error());
  for (std::int64_t pass = 0; pass < 2; ++pass) {
    zero_gradients(network);
    toy_loss(network, pass, rank.rank * kBatch, kBatch).backward();
    if (auto finished = (*group)->finish_gradients(); !finished) return report(finished.error());
  }
  const auto sums = (*group)->sum({1.0, rank.rank + 0.5});
  if (!sums) return report(sums.error());
  if (rank.rank > 0) return 0;
  std::vector<torch::Tensor> result;
  for (const torch::Tensor& parameter : network->parameters()) {
    if (!parameter.requires_grad()) continue;
    result.push_back(parameter.grad().defined() ? parameter.grad().contiguous() : torch::zeros_like(parameter));
  }
  torch::save(result, file);
  std::cout << (*sums)[0] << ' ' << (*sums)[1] << ' ' << rank.launcher << '\n';
  return 0;
}

// Trains on; the rank given ends itself in pass 3, without a word.
int lose(const Rank& rank, int lost) {
  auto group = Group::join(rank, torch::kCPU, 30);
  if (!group) return report(group.error());
  ToyNetwork network = make_toy(1);
  if (auto set = (*group)->average_gradients_of(network->parameters()); !set) return report(set.error());
  for (std::int64_t pass = 0; pass < 1000; ++pass) {
    if (pass == 3 && rank.rank == lost) ::raise(SIGKILL);
    zero_gradients(network);
    toy_loss(network, pass, rank.rank * kBatch, kBatch).backward();
    if (auto finished = (*group)->finish_gradients(); !finished) return report(finished.error());
  }
  return 0;
}

int scenario(const std::vector<std::string>& words) {
  const auto rank = ergometer::workload::rank_from_environment();
  if (!rank) return report(rank.error());
  if (words.at(0) == "gradients") return gradients(*rank, words.at(1));
  return lose(*rank, std::atoi(words.at(1).c_str()));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.at(0) != "--ranks") return scenario(words);
  const auto code = ergometer::workload::run_ranks(std::atoi(words.at(1).c_str()), words, std::cerr);
  return code ? *code : report(code.error());
}
