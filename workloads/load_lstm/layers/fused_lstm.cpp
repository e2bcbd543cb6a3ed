#include "load_lstm/layers/fused_lstm.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "load_lstm/layers/lstm_kernel.hpp"

namespace ergometer::workload {

const std::vector<const LstmKernel*>& usable_lstm_kernels() {
  static const std::vector<const LstmKernel*> usable = [] {
    std::vector<const LstmKernel*> kernels;
#ifdef ERGOMETER_X86_KERNELS
    if (__builtin_cpu_supports("avx512f")) kernels.push_back(&avx512::kKernel);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) kernels.push_back(&avx2::kKernel);
#endif
    kernels.push_back(&baseline::kKernel);
    return kernels;
  }();
  return usable;
}

namespace {

using torch::Tensor;

const LstmKernel* chosen_kernel = nullptr;  // null: the fastest

const LstmKernel& lstm_kernel() { return chosen_kernel ? *chosen_kernel : *usable_lstm_kernels().front(); }

// Steps whose gate gradients are collected before they are multiplied into the weight gradient: they stay in the cache.
constexpr std::int64_t kTile = 8;

// [batch][steps][features] of lanes first .. first + lanes into [steps][features][kLanes]; missing lanes become 0.
void to_lanes(const float* from, std::int64_t lanes, std::int64_t steps, std::int64_t features, float* to) {
  const std::int64_t sequence = steps * features;
  for (std::int64_t i = 0; i < sequence; ++i) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) to[i * kLanes + lane] = from[lane * sequence + i];
    for (std::int64_t lane = lanes; lane < kLanes; ++lane) to[i * kLanes + lane] = 0.0F;
  }
}

void from_lanes(const float* from, std::int64_t lanes, std::int64_t sequence, float* to) {
  for (std::int64_t i = 0; i < sequence; ++i) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) to[lane * sequence + i] = from[i * kLanes + lane];
  }
}

// Row-major left and right, side by side, into [rows / block][left + right columns][block].
std::vector<float> pack(const float* left, std::int64_t left_columns, const float* right, std::int64_t right_columns,
                        std::int64_t rows, std::int64_t block) {
  std::vector<float> packed;
  packed.reserve(static_cast<std::size_t>(rows * (left_columns + right_columns)));
  for (std::int64_t row = 0; row < rows; row += block) {
    for (std::int64_t k = 0; k < left_columns; ++k) {
      for (std::int64_t r = 0; r < block; ++r) packed.push_back(left[(row + r) * left_columns + k]);
    }
    for (std::int64_t k = 0; k < right_columns; ++k) {
      for (std::int64_t r = 0; r < block; ++r) packed.push_back(right[(row + r) * right_columns + k]);
    }
  }
  return packed;
}

struct Sizes {
  LstmShape shape;
  std::int64_t batch = 0;
  std::int64_t groups = 0;  // of kLanes sequences

  Sizes(const Tensor& input, const Tensor& weight_hh)
      : shape{input.size(2), weight_hh.size(1), input.size(1)},
        batch(input.size(0)),
        groups((batch + kLanes - 1) / kLanes) {}
  std::int64_t lanes(std::int64_t group) const { return std::min(kLanes, batch - group * kLanes); }
  std::int64_t unit() const { return shape.hidden * kLanes; }
};

Tensor floats(std::int64_t a, std::int64_t b) { return torch::empty({a, b}, torch::kFloat32); }

// Returns h and, with keep, fills gates, cells and their tanh, each [groups][...].
Tensor run_forward(const Tensor& input, const Tensor& weight_ih, const Tensor& weight_hh, const Tensor& bias, bool keep,
                   Tensor (&tape)[3]) {
  const Sizes sizes(input, weight_hh);
  const LstmShape shape = sizes.shape;
  const LstmKernel& kernel = lstm_kernel();
  const auto weights = pack(weight_ih.data_ptr<float>(), shape.input, weight_hh.data_ptr<float>(), shape.hidden,
                            shape.gates(), kernel.row_block);
  const std::int64_t kept = keep ? shape.steps : 1;
  tape[0] = floats(sizes.groups, kept * 4 * sizes.unit());
  tape[1] = floats(sizes.groups, kept * sizes.unit());
  tape[2] = floats(sizes.groups, kept * sizes.unit());
  Tensor output = torch::empty({sizes.batch, shape.steps, shape.hidden}, torch::kFloat32);
  const float* bias_data = bias.data_ptr<float>();
  const float* x = input.data_ptr<float>();
  float* h = output.data_ptr<float>();
  float* const kept_data[3] = {tape[0].data_ptr<float>(), tape[1].data_ptr<float>(), tape[2].data_ptr<float>()};
  at::parallel_for(0, sizes.groups, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> x_lanes(static_cast<std::size_t>(shape.steps * shape.input * kLanes));
    std::vector<float> h_lanes(static_cast<std::size_t>(shape.steps * sizes.unit()));
    std::vector<float> state(static_cast<std::size_t>(shape.depth() * kLanes));
    for (std::int64_t group = begin; group < end; ++group) {
      const std::int64_t first = group * kLanes * shape.steps;
      to_lanes(x + first * shape.input, sizes.lanes(group), shape.steps, shape.input, x_lanes.data());
      const LstmTape views{kept_data[0] + group * kept * 4 * sizes.unit(), kept_data[1] + group * kept * sizes.unit(),
                           kept_data[2] + group * kept * sizes.unit()};
      kernel.forward(shape, weights.data(), bias_data, x_lanes.data(), h_lanes.data(), views, keep, state.data());
      from_lanes(h_lanes.data(), sizes.lanes(group), shape.steps * shape.hidden, h + first * shape.hidden);
    }
  });
  return output;
}

// One group's backward pass; adds to d_weight [4 * hidden][hidden], and to d_bias and d_input lane by lane.
void group_backward(const LstmShape& shape, const LstmKernel& kernel, const std::vector<float>& recurrent,
                    const LstmTape& tape, std::int64_t lanes, const float* x, const float* h, const float* d_h,
                    float* d_weight, float* d_bias, float* d_input) {
  const std::int64_t unit = shape.hidden * kLanes;
  std::vector<float> x_lanes(static_cast<std::size_t>(shape.steps * shape.input * kLanes));
  std::vector<float> d_h_lanes(static_cast<std::size_t>(shape.steps * unit));
  std::vector<float> dh(static_cast<std::size_t>(unit), 0.0F);
  std::vector<float> dc(static_cast<std::size_t>(unit), 0.0F);
  std::vector<float> d_gates(static_cast<std::size_t>(kTile * 4 * unit));
  to_lanes(x, lanes, shape.steps, shape.input, x_lanes.data());
  to_lanes(d_h, lanes, shape.steps, shape.hidden, d_h_lanes.data());
  for (std::int64_t end = shape.steps; end > 0;) {
    const std::int64_t begin = std::max<std::int64_t>(0, end - kTile);
    for (std::int64_t t = end - 1; t >= begin; --t) {
      float* now = d_gates.data() + (t - begin) * 4 * unit;
      kernel.backward_step(shape, recurrent.data(), tape, t, d_h_lanes.data() + t * unit, dh.data(), dc.data(), now);
      kernel.add_input_gradient(shape, now, x_lanes.data() + t * shape.input * kLanes, d_bias, d_input);
    }
    // h(-1) is zero: step 0 adds nothing to the hidden weights' gradient.
    const std::int64_t from = std::max<std::int64_t>(begin, 1);
    if (from < end) {
      kernel.add_weight_gradient(shape, end - from, lanes, d_gates.data() + (from - begin) * 4 * unit,
                                 h + (from - 1) * shape.hidden, shape.steps * shape.hidden, d_weight);
    }
    end = begin;
  }
}

struct FusedLstm : torch::autograd::Function<FusedLstm> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input, const Tensor& weight_ih,
                        const Tensor& weight_hh, const Tensor& bias) {
    Tensor tape[3];
    Tensor output = run_forward(input, weight_ih, weight_hh, bias, true, tape);
    context->save_for_backward({input, weight_hh, output, tape[0], tape[1], tape[2]});
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor& input = saved[0];
    const Tensor& weight_hh = saved[1];
    const Tensor& output = saved[2];
    const Tensor d_output = gradients[0].contiguous();
    const Sizes sizes(input, weight_hh);
    const LstmShape shape = sizes.shape;
    const LstmKernel& kernel = lstm_kernel();
    const Tensor transposed = weight_hh.detach().t().contiguous();
    const auto recurrent =
        pack(transposed.data_ptr<float>(), shape.gates(), nullptr, 0, shape.hidden, kernel.row_block);
    // Each group has its own sums, added in a fixed order afterwards: the same bits for any number of threads.
    Tensor d_weight = torch::zeros({sizes.groups, shape.gates(), shape.hidden});
    Tensor d_bias = torch::zeros({sizes.groups, shape.gates(), kLanes});
    Tensor d_input = torch::zeros({sizes.groups, shape.gates(), shape.input, kLanes});
    float* const data[3] = {saved[3].data_ptr<float>(), saved[4].data_ptr<float>(), saved[5].data_ptr<float>()};
    const float* x = input.data_ptr<float>();
    const float* h = output.data_ptr<float>();
    const float* d_h = d_output.data_ptr<float>();
    float* const sums[3] = {d_weight.data_ptr<float>(), d_bias.data_ptr<float>(), d_input.data_ptr<float>()};
    at::parallel_for(0, sizes.groups, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t group = begin; group < end; ++group) {
        const std::int64_t first = group * kLanes * shape.steps;
        const std::int64_t kept = group * shape.steps * sizes.unit();
        group_backward(shape, kernel, recurrent, {data[0] + 4 * kept, data[1] + kept, data[2] + kept},
                       sizes.lanes(group), x + first * shape.input, h + first * shape.hidden,
                       d_h + first * shape.hidden, sums[0] + group * shape.gates() * shape.hidden,
                       sums[1] + group * shape.gates() * kLanes,
                       sums[2] + group * shape.gates() * shape.input * kLanes);
      }
    });
    return {Tensor(), d_input.sum(3).sum(0), d_weight.sum(0), d_bias.sum(2).sum(0)};
  }
};

}  // namespace

void use_lstm_kernel(const LstmKernel& kernel) { chosen_kernel = &kernel; }

bool can_fuse_lstm(const Tensor& input, const Tensor& weight_hh) {
  return input.device().is_cpu() && input.scalar_type() == torch::kFloat32 && input.dim() == 3 &&
         weight_hh.scalar_type() == torch::kFloat32 && weight_hh.size(1) % kLanes == 0 &&
         !(torch::GradMode::is_enabled() && input.requires_grad());
}

Tensor fused_lstm(const Tensor& input, const Tensor& weight_ih, const Tensor& weight_hh, const Tensor& bias_ih,
                  const Tensor& bias_hh) {
  TORCH_CHECK(can_fuse_lstm(input, weight_hh), "fused_lstm: unsupported device, type or size");
  // The two biases always act as their sum; autograd hands each of them the sum's gradient.
  const Tensor bias = bias_ih + bias_hh;
  if (torch::GradMode::is_enabled() && (weight_ih.requires_grad() || weight_hh.requires_grad() || bias.requires_grad()))
    return FusedLstm::apply(input.contiguous(), weight_ih.contiguous(), weight_hh.contiguous(), bias);
  Tensor tape[3];
  return run_forward(input.contiguous(), weight_ih.contiguous(), weight_hh.contiguous(), bias, false, tape);
}

}  // namespace ergometer::workload
