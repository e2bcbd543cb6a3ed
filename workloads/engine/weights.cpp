#include "engine/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

namespace ergometer::workload {
namespace {

constexpr std::size_t kListed = 8;  // names in a message

std::string list(std::vector<std::string> names) {
  const std::size_t all = names.size();
  if (all > kListed) names.resize(kListed);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     all > kListed ? fmt::format(" and {} more", all - kListed) : std::string());
}

}  // namespace

NamedTensors named_tensors(const torch::nn::Module& network) {
  NamedTensors tensors;
  for (const auto& parameter : network.named_parameters()) tensors.emplace_back(parameter.key(), parameter.value());
  for (const auto& buffer : network.named_buffers()) tensors.emplace_back(buffer.key(), buffer.value());
  return tensors;
}

Result<Done> copy_by_name(const NamedTensors& from, const NamedTensors& to) {
  std::map<std::string, torch::Tensor> given(from.begin(), from.end());
  std::vector<std::string> missing;
  for (const auto& [name, tensor] : to) {
    const auto found = given.find(name);
    if (found == given.end()) {
      missing.push_back(name);
    } else if (found->second.sizes() != tensor.sizes()) {
      return Error{
          Fault::data,
          fmt::format("{} is {}, not {}", name, fmt::join(found->second.sizes(), "x"), fmt::join(tensor.sizes(), "x")),
          {}};
    }
  }
  if (!missing.empty()) return Error{Fault::data, fmt::format("lacks {}", list(missing)), {}};
  std::vector<std::string> unknown;
  std::map<std::string, torch::Tensor> targets(to.begin(), to.end());
  for (const auto& [name, tensor] : from) {
    if (targets.count(name) == 0) unknown.push_back(name);
  }
  if (!unknown.empty()) return Error{Fault::data, fmt::format("has unknown {}", list(unknown)), {}};
  const torch::NoGradGuard no_gradient;
  for (const auto& [name, tensor] : to) tensor.detach().copy_(given.at(name));
  return Done{};
}

Snapshot::Snapshot(std::vector<torch::Tensor> tensors) : tensors_(std::move(tensors)) {
  const torch::NoGradGuard no_gradient;
  for (const torch::Tensor& tensor : tensors_) values_.push_back(tensor.detach().clone());
}

void Snapshot::restore() const {
  const torch::NoGradGuard no_gradient;
  for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].detach().copy_(values_[i]);
}

}  // namespace ergometer::workload
