#include "steps/optimiser.hpp"

#include <fmt/format.h>

#include "steps/update_rules.hpp"

namespace ergometer::workload {

Optimiser::Optimiser(std::vector<torch::Tensor> parameters, const OptimiserFacts& facts)
    : parameters_(std::move(parameters)), rule_(UpdateRule::make(parameters_, facts)) {}

Optimiser::~Optimiser() = default;
Optimiser::Optimiser(Optimiser&&) noexcept = default;
Optimiser& Optimiser::operator=(Optimiser&&) noexcept = default;

void Optimiser::step(const torch::Tensor& found_inf) {
  const torch::NoGradGuard no_gradient;
  rule_->step(found_inf);
}

void Optimiser::zero_gradients() {
  const torch::NoGradGuard no_gradient;
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  if (!gradients.empty()) at::_foreach_zero_(gradients);
}

void Optimiser::release_gradients() {
  for (torch::Tensor& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
}

void Optimiser::set_learning_rate(double rate) { rule_->set_learning_rate(rate); }

NamedTensors Optimiser::state() const { return rule_->state(); }

Result<Done> Optimiser::load(const NamedTensors& state) {
  const torch::NoGradGuard no_gradient;
  const NamedTensors own = rule_->state();
  bool fits = own.size() == state.size();
  for (std::size_t i = 0; fits && i < own.size(); ++i) {
    fits = own[i].first == state[i].first && own[i].second.sizes() == state[i].second.sizes();
  }
  if (!fits) {
    return Error{
        Fault::data,
        fmt::format("the saved optimiser state ({} tensors) is not of this update rule and network ({} tensors)",
                    state.size(), own.size()),
        "resume with the workload and the options that wrote it"};
  }
  for (std::size_t i = 0; i < own.size(); ++i) own[i].second.copy_(state[i].second);
  return Done{};
}

}  // namespace ergometer::workload
