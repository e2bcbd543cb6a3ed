#include "steps/precision.hpp"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <torch/version.h>

namespace ergometer::workload {
namespace {

constexpr double kFirstScale = 65536;
constexpr double kGrowth = 2;
constexpr double kBackoff = 0.5;
constexpr std::int64_t kGrowthInterval = 2000;

// Autocast's switches by device type exist since LibTorch 2.4; before, each device has its own functions.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
bool enabled(torch::DeviceType device) { return at::autocast::is_autocast_enabled(device); }
void set_enabled(torch::DeviceType device, bool on) { at::autocast::set_autocast_enabled(device, on); }
torch::ScalarType type(torch::DeviceType device) { return at::autocast::get_autocast_dtype(device); }
void set_type(torch::DeviceType device, torch::ScalarType type) { at::autocast::set_autocast_dtype(device, type); }
#else
bool enabled(torch::DeviceType device) {
  return device == torch::kCUDA ? at::autocast::is_enabled() : at::autocast::is_cpu_enabled();
}
void set_enabled(torch::DeviceType device, bool on) {
  device == torch::kCUDA ? at::autocast::set_enabled(on) : at::autocast::set_cpu_enabled(on);
}
torch::ScalarType type(torch::DeviceType device) {
  return device == torch::kCUDA ? at::autocast::get_autocast_gpu_dtype() : at::autocast::get_autocast_cpu_dtype();
}
void set_type(torch::DeviceType device, torch::ScalarType type) {
  device == torch::kCUDA ? at::autocast::set_autocast_gpu_dtype(type) : at::autocast::set_autocast_cpu_dtype(type);
}
#endif

}  // namespace

Result<Precision> parse_precision(std::string_view text) {
  if (text == "fp32") return Precision::fp32;
  if (text == "tf32") return Precision::tf32;
  if (text == "bf16") return Precision::bf16;
  if (text == "fp16") return Precision::fp16;
  return Error{Fault::usage, fmt::format("'{}' is no precision", text), "give fp32, tf32, bf16 or fp16"};
}

Result<Done> set_precision(Precision precision, const torch::Device& device) {
  if (!device.is_cuda() && (precision == Precision::tf32 || precision == Precision::fp16)) {
    return Error{Fault::usage,
                 fmt::format("the CPU does not compute in {}", precision == Precision::tf32 ? "tf32" : "fp16"),
                 "give --precision fp32 or bf16, or --device cuda"};
  }
  const bool tf32 = precision == Precision::tf32;
  at::globalContext().setAllowTF32CuBLAS(tf32);
  at::globalContext().setAllowTF32CuDNN(tf32);
  return Done{};
}

Autocast::Autocast(Precision precision, const torch::Device& device) : device_(device.type()) {
  if (precision != Precision::bf16 && precision != Precision::fp16) return;
  on_ = true;
  was_enabled_ = enabled(device_);
  previous_ = type(device_);
  set_enabled(device_, true);
  set_type(device_, precision == Precision::bf16 ? torch::kBFloat16 : torch::kHalf);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  set_type(device_, previous_);
  set_enabled(device_, was_enabled_);
}

LossScaler::LossScaler(Precision precision, const torch::Device& device) {
  if (precision != Precision::fp16) return;
  const auto scalar = torch::TensorOptions().dtype(torch::kFloat32).device(device);
  scale_ = torch::full({}, kFirstScale, scalar);
  growth_ = torch::zeros({}, scalar.dtype(torch::kInt32));
  found_inf_ = torch::zeros({}, scalar);
}

torch::Tensor LossScaler::scale(const torch::Tensor& loss) const { return scale_.defined() ? loss * scale_ : loss; }

torch::Tensor LossScaler::unscale(std::vector<torch::Tensor>& gradients) {
  if (!scale_.defined()) return {};
  const torch::NoGradGuard no_gradient;
  found_inf_.zero_();
  // In double, as GradScaler does: 1 / scale in fp32 may be subnormal.
  const torch::Tensor inverse = scale_.to(torch::kFloat64).reciprocal().to(torch::kFloat32);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf_, inverse);
  return found_inf_;
}

void LossScaler::update() {
  if (!scale_.defined()) return;
  const torch::NoGradGuard no_gradient;
  at::_amp_update_scale_(scale_, growth_, found_inf_, kGrowth, kBackoff, kGrowthInterval);
}

std::vector<std::pair<std::string, torch::Tensor>> LossScaler::state() const {
  if (!scale_.defined()) return {};
  return {{"scale", scale_}, {"growth_tracker", growth_}};
}

}  // namespace ergometer::workload
