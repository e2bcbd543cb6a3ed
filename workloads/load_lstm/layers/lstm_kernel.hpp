// The inner loops of the fused LSTM (fused_lstm.cpp), compiled once for each instruction set and chosen at run time.
// All buffers hold kLanes sequences side by side: element [row][lane]. One call works on one such group of sequences
// and touches nothing else, so that groups run on several threads without synchronisation.
#pragma once

#include <cstdint>
#include <vector>

namespace ergometer::workload {

inline constexpr std::int64_t kLanes = 16;

// Sizes of one LSTM layer. `hidden` is a multiple of 16.
struct LstmShape {
  std::int64_t input = 1;
  std::int64_t hidden = 16;
  std::int64_t steps = 1;

  std::int64_t gates() const { return 4 * hidden; }
  std::int64_t depth() const { return input + hidden; }
};

// What the forward pass keeps for the backward pass, for one group of lanes. Gate order as in PyTorch: i, f, g, o.
struct LstmTape {
  float* gates;      // [steps][4 * hidden][kLanes], after their activation
  float* cell;       // [steps][hidden][kLanes]
  float* cell_tanh;  // [steps][hidden][kLanes]
};

// One instruction set's kernels. Matrices that are multiplied from the left are packed: [rows / block][depth][block].
struct LstmKernel {
  const char* name;
  std::int64_t row_block;

  // h(t) for all steps from h(-1) = c(-1) = 0. weights: packed [4 * hidden] x [input + hidden], bias: [4 * hidden],
  // x: [steps][input][kLanes], h: [steps][hidden][kLanes]; state: scratch of (input + hidden) * kLanes.
  // Without a tape, tape->gates and so on have room for one step and `keep` is false.
  void (*forward)(const LstmShape& shape, const float* weights, const float* bias, const float* x, float* h,
                  const LstmTape& tape, bool keep, float* state);

  // The elementwise part of one backward step and the gradient that goes on to h(t-1). recurrent: packed
  // [hidden] x [4 * hidden], the transposed hidden weights. dh and dc come in as the gradients of h(t) and c(t) without
  // the output's own part, d_output is that part; both leave as those of h(t-1) and c(t-1). d_gates:
  // [4*hidden][kLanes].
  void (*backward_step)(const LstmShape& shape, const float* recurrent, const LstmTape& tape, std::int64_t step,
                        const float* d_output, float* dh, float* dc, float* d_gates);

  // d_weight[4 * hidden][hidden] += sum over steps and lanes of d_gates x h(t-1). d_gates: [count][4 * hidden][kLanes];
  // previous: h(t-1) of the first step and lane 0, rows of `hidden` floats, lane_stride floats between lanes.
  void (*add_weight_gradient)(const LstmShape& shape, std::int64_t count, std::int64_t lanes, const float* d_gates,
                              const float* previous, std::int64_t lane_stride, float* d_weight);

  // d_bias[4*hidden][kLanes] += d_gates, d_input_weight[4*hidden][input][kLanes] += d_gates * x, for one step.
  void (*add_input_gradient)(const LstmShape& shape, const float* d_gates, const float* x, float* d_bias,
                             float* d_input_weight);
};

// The kernels that this processor can run, the fastest first.
[[nodiscard]] const std::vector<const LstmKernel*>& usable_lstm_kernels();

// What fused_lstm() uses from now on instead of the fastest; for tests and benchmarks, not while another thread
// computes.
void use_lstm_kernel(const LstmKernel& kernel);

namespace baseline {
extern const LstmKernel kKernel;
}
namespace avx2 {
extern const LstmKernel kKernel;
}
namespace avx512 {
extern const LstmKernel kKernel;
}

}  // namespace ergometer::workload
