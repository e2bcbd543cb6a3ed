#include "steps/update_rules.hpp"

#include <fmt/format.h>
#include <torch/version.h>

#include <cmath>

// Fused operators that take the learning rate as a tensor, as recorded graphs need: since LibTorch 2.3.
#define ERGOMETER_FUSED_UPDATES (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3))

namespace ergometer::workload {
namespace {

// torch.optim.Adam's defaults.
constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

bool may_fuse(const std::vector<torch::Tensor>& parameters) {
  return ERGOMETER_FUSED_UPDATES && !parameters.empty() && parameters.front().is_cuda();
}

#if ERGOMETER_FUSED_UPDATES
std::optional<torch::Tensor> if_defined(const torch::Tensor& tensor) {
  return tensor.defined() ? std::optional<torch::Tensor>(tensor) : std::nullopt;
}
#endif

// torch.optim.SGD without dampening. A zero momentum buffer makes its first step what torch.optim's special case of it
// is, since 0 times the momentum plus the gradient is the gradient.
class Sgd : public UpdateRule {
 public:
  Sgd(const std::vector<torch::Tensor>& parameters, const OptimiserFacts& facts) : UpdateRule(parameters, facts) {
    if (facts.momentum != 0) keep("momentum_buffer");
  }

 private:
  void update(const Given& given, const torch::Tensor& found_inf) override {
#if ERGOMETER_FUSED_UPDATES
    if (fused_) {
      at::_fused_sgd_(given.parameters, given.gradients,
                      given.kept.empty() ? std::vector<torch::Tensor>{} : given.kept.front(), facts_.weight_decay,
                      facts_.momentum, rate_on_device_, /*dampening=*/0, facts_.nesterov, /*maximize=*/false,
                      /*is_first_step=*/false, /*grad_scale=*/std::nullopt, if_defined(found_inf));
      return;
    }
#endif
    static_cast<void>(found_inf);
    for (std::size_t i = 0; i < given.parameters.size(); ++i) {
      torch::Tensor parameter = given.parameters[i];
      torch::Tensor direction = given.gradients[i];
      if (facts_.weight_decay != 0) direction = direction.add(parameter, facts_.weight_decay);
      if (facts_.momentum != 0) {
        torch::Tensor buffer = given.kept.front()[i];
        buffer.mul_(facts_.momentum).add_(direction);
        direction = facts_.nesterov ? direction.add(buffer, facts_.momentum) : buffer;
      }
      parameter.add_(direction, -rate_);
    }
  }
};

// torch.optim.Adam and AdamW without amsgrad (Kingma and Ba 2014, algorithm 1; Loshchilov and Hutter 2017).
class Adam : public UpdateRule {
 public:
  Adam(const std::vector<torch::Tensor>& parameters, const OptimiserFacts& facts)
      : UpdateRule(parameters, facts), means_(keep("exp_avg")), squares_(keep("exp_avg_sq")) {}

 private:
  void update(const Given& given, const torch::Tensor& found_inf) override {
#if ERGOMETER_FUSED_UPDATES
    if (fused_) {
      fused(given, found_inf);
      return;
    }
#endif
    static_cast<void>(found_inf);
    const double count = count_.item<double>();
    const double step_size = rate_ / (1 - std::pow(kBeta1, count));
    const double square_correction = std::sqrt(1 - std::pow(kBeta2, count));
    for (std::size_t i = 0; i < given.parameters.size(); ++i) {
      torch::Tensor parameter = given.parameters[i];
      torch::Tensor gradient = given.gradients[i];
      torch::Tensor mean = given.kept[means_][i];
      torch::Tensor square = given.kept[squares_][i];
      if (facts_.weight_decay != 0) {
        if (facts_.decoupled_decay) {
          parameter.mul_(1 - rate_ * facts_.weight_decay);
        } else {
          gradient = gradient.add(parameter, facts_.weight_decay);
        }
      }
      mean.lerp_(gradient, 1 - kBeta1);
      square.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
      parameter.addcdiv_(mean, square.sqrt().div_(square_correction).add_(kEpsilon), -step_size);
    }
  }

#if ERGOMETER_FUSED_UPDATES
  void fused(const Given& given, const torch::Tensor& found_inf) {
    // The operators want a step count a parameter; they only read it, so it may be the same one each time.
    const std::vector<torch::Tensor> counts(given.parameters.size(), count_);
    const auto run = [&](auto operation) {
      operation(given.parameters, given.gradients, given.kept[means_], given.kept[squares_],
                /*max_exp_avg_sqs=*/std::vector<torch::Tensor>{}, counts, rate_on_device_, kBeta1, kBeta2,
                facts_.weight_decay, kEpsilon, /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/std::nullopt,
                if_defined(found_inf));
    };
    if (facts_.decoupled_decay) {
      run([](auto&&... given_to) { at::_fused_adamw_(std::forward<decltype(given_to)>(given_to)...); });
    } else {
      run([](auto&&... given_to) { at::_fused_adam_(std::forward<decltype(given_to)>(given_to)...); });
    }
  }
#endif

  std::size_t means_;
  std::size_t squares_;
};

}  // namespace

std::unique_ptr<UpdateRule> UpdateRule::make(const std::vector<torch::Tensor>& parameters,
                                             const OptimiserFacts& facts) {
  if (facts.rule == Rule::sgd) return std::make_unique<Sgd>(parameters, facts);
  return std::make_unique<Adam>(parameters, facts);
}

UpdateRule::UpdateRule(const std::vector<torch::Tensor>& parameters, const OptimiserFacts& facts)
    : facts_(facts), fused_(may_fuse(parameters)), rate_(facts.learning_rate), parameters_(parameters) {
  const auto where = torch::TensorOptions()
                         .dtype(torch::kFloat32)
                         .device(parameters.empty() ? torch::Device(torch::kCPU) : parameters.front().device());
  rate_on_device_ = torch::full({}, rate_, where);
  // Without the fused operators the host needs the count.
  count_ = torch::zeros({}, fused_ ? where : where.device(torch::kCPU));
}

std::size_t UpdateRule::keep(const std::string& name) {
  Kept kept{name, {}};
  for (const torch::Tensor& parameter : parameters_) kept.tensors.push_back(torch::zeros_like(parameter.detach()));
  kept_.push_back(std::move(kept));
  return kept_.size() - 1;
}

void UpdateRule::step(const torch::Tensor& found_inf) {
  if (!fused_ && found_inf.defined() && found_inf.item<float>() != 0) return;
  Given given;
  given.kept.resize(kept_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) continue;
    given.parameters.push_back(parameters_[i]);
    given.gradients.push_back(parameters_[i].grad());
    for (std::size_t kind = 0; kind < kept_.size(); ++kind) given.kept[kind].push_back(kept_[kind].tensors[i]);
  }
  count_.add_(1);
  if (!given.parameters.empty()) update(given, found_inf);
  if (fused_ && found_inf.defined()) count_.sub_(found_inf);
}

void UpdateRule::set_learning_rate(double rate) {
  rate_ = rate;
  rate_on_device_.fill_(rate);
}

NamedTensors UpdateRule::state() const {
  NamedTensors state = {{"step", count_}};
  for (const Kept& kept : kept_) {
    for (std::size_t i = 0; i < kept.tensors.size(); ++i) {
      state.emplace_back(fmt::format("{}.{}", kept.name, i), kept.tensors[i]);
    }
  }
  return state;
}

}  // namespace ergometer::workload
