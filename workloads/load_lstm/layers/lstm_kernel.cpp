// Compiled once for each instruction set, with ERGOMETER_KERNEL naming the namespace and ERGOMETER_VECTOR the floats of
// a register. It calls nothing of the standard library: a shared inline function compiled here for AVX-512 could be the
// copy that the linker keeps for everybody.
#include "load_lstm/layers/lstm_kernel.hpp"

namespace ergometer::workload::ERGOMETER_KERNEL {
namespace {

constexpr int kWidth = ERGOMETER_VECTOR;
constexpr int kParts = static_cast<int>(kLanes) / kWidth;  // registers for a row of lanes
// Rows of a matrix product worked on together: as many accumulators as hide the latency and fit the register file.
constexpr int kRows = kWidth == 16 ? 16 : kWidth == 8 ? 4 : 2;

using Floats = float __attribute__((vector_size(kWidth * sizeof(float)), aligned(sizeof(float)), may_alias));
using Ints = std::int32_t __attribute__((vector_size(kWidth * sizeof(float))));

inline Floats load(const float* from) { return *reinterpret_cast<const Floats*>(from); }
inline void store(float* to, Floats value) { *reinterpret_cast<Floats*>(to) = value; }
inline Floats all(float value) { return Floats{} + value; }

// e^x, relative error about 1e-7 (Cephes expf): x = n ln 2 + r, a polynomial in r, n into the exponent's bits.
inline Floats exponential(Floats x) {
  x = x > all(88.0F) ? all(88.0F) : x;
  x = x < all(-87.0F) ? all(-87.0F) : x;
  const Floats scaled = x * 1.44269504088896341F;
  const Floats rounded = scaled + (scaled > all(0.0F) ? all(0.5F) : all(-0.5F));
  const Ints n = __builtin_convertvector(rounded, Ints);
  const Floats whole = __builtin_convertvector(n, Floats);
  const Floats r = (x - whole * 0.693359375F) + whole * 2.12194440e-4F;
  Floats p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const Ints bits = (n + 127) << 23;
  return p * reinterpret_cast<const Floats&>(bits);
}

inline Floats sigmoid(Floats x) { return 1.0F / (1.0F + exponential(-x)); }
inline Floats hyperbolic_tangent(Floats x) { return 2.0F / (1.0F + exponential(x * -2.0F)) - 1.0F; }

// out[rows][kLanes] = start + packed[rows][depth] * in[depth][kLanes]; start: bias[rows] or nothing.
void multiply(std::int64_t rows, std::int64_t depth, const float* packed, const float* bias, const float* in,
              float* out) {
  for (std::int64_t row = 0; row < rows; row += kRows) {
    Floats sum[kRows][kParts];
    for (int r = 0; r < kRows; ++r) {
      for (int part = 0; part < kParts; ++part) sum[r][part] = all(bias ? bias[row + r] : 0.0F);
    }
    for (std::int64_t k = 0; k < depth; ++k) {
      Floats value[kParts];
      for (int part = 0; part < kParts; ++part) value[part] = load(in + k * kLanes + part * kWidth);
      for (int r = 0; r < kRows; ++r) {
        for (int part = 0; part < kParts; ++part) sum[r][part] += packed[r] * value[part];
      }
      packed += kRows;
    }
    for (int r = 0; r < kRows; ++r) {
      for (int part = 0; part < kParts; ++part) store(out + (row + r) * kLanes + part * kWidth, sum[r][part]);
    }
  }
}

void forward(const LstmShape& shape, const float* weights, const float* bias, const float* x, float* h,
             const LstmTape& tape, bool keep, float* state) {
  const std::int64_t inputs = shape.input * kLanes;
  const std::int64_t unit = shape.hidden * kLanes;
  float* hidden = state + inputs;
  for (std::int64_t i = 0; i < unit; ++i) hidden[i] = 0.0F;
  const float* before = nullptr;  // c(t-1); null: zero
  for (std::int64_t t = 0; t < shape.steps; ++t) {
    const std::int64_t kept = keep ? t : 0;
    float* gates = tape.gates + kept * 4 * unit;
    float* cell = tape.cell + kept * unit;
    float* cell_tanh = tape.cell_tanh + kept * unit;
    for (std::int64_t i = 0; i < inputs; ++i) state[i] = x[t * inputs + i];
    multiply(shape.gates(), shape.depth(), weights, bias, state, gates);
    for (std::int64_t i = 0; i < unit; i += kWidth) {
      const Floats in = sigmoid(load(gates + i));
      const Floats forget = sigmoid(load(gates + unit + i));
      const Floats candidate = hyperbolic_tangent(load(gates + 2 * unit + i));
      const Floats output = sigmoid(load(gates + 3 * unit + i));
      const Floats c = before ? forget * load(before + i) + in * candidate : in * candidate;
      const Floats bounded = hyperbolic_tangent(c);
      store(gates + i, in);
      store(gates + unit + i, forget);
      store(gates + 2 * unit + i, candidate);
      store(gates + 3 * unit + i, output);
      store(cell + i, c);
      store(cell_tanh + i, bounded);
      store(hidden + i, output * bounded);
      store(h + t * unit + i, output * bounded);
    }
    before = cell;
  }
}

void backward_step(const LstmShape& shape, const float* recurrent, const LstmTape& tape, std::int64_t step,
                   const float* d_output, float* dh, float* dc, float* d_gates) {
  const std::int64_t unit = shape.hidden * kLanes;
  const float* gates = tape.gates + step * 4 * unit;
  const float* cell_tanh = tape.cell_tanh + step * unit;
  const float* before = step > 0 ? tape.cell + (step - 1) * unit : nullptr;
  for (std::int64_t i = 0; i < unit; i += kWidth) {
    const Floats in = load(gates + i);
    const Floats forget = load(gates + unit + i);
    const Floats candidate = load(gates + 2 * unit + i);
    const Floats output = load(gates + 3 * unit + i);
    const Floats bounded = load(cell_tanh + i);
    const Floats d_h = load(dh + i) + load(d_output + i);
    const Floats d_c = load(dc + i) + d_h * output * (1.0F - bounded * bounded);
    const Floats previous = before ? load(before + i) : all(0.0F);
    store(d_gates + i, d_c * candidate * in * (1.0F - in));
    store(d_gates + unit + i, d_c * previous * forget * (1.0F - forget));
    store(d_gates + 2 * unit + i, d_c * in * (1.0F - candidate * candidate));
    store(d_gates + 3 * unit + i, d_h * bounded * output * (1.0F - output));
    store(dc + i, d_c * forget);
  }
  if (step > 0) multiply(shape.hidden, shape.gates(), recurrent, nullptr, d_gates, dh);
}

void add_weight_gradient(const LstmShape& shape, std::int64_t count, std::int64_t lanes, const float* d_gates,
                         const float* previous, std::int64_t lane_stride, float* d_weight) {
  for (std::int64_t row = 0; row < shape.gates(); row += kRows) {
    for (std::int64_t column = 0; column < shape.hidden; column += kParts * kWidth) {
      Floats sum[kRows][kParts];
      for (int r = 0; r < kRows; ++r) {
        for (int part = 0; part < kParts; ++part) {
          sum[r][part] = load(d_weight + (row + r) * shape.hidden + column + part * kWidth);
        }
      }
      for (std::int64_t s = 0; s < count; ++s) {
        const float* left = d_gates + (s * shape.gates() + row) * kLanes;
        const float* right = previous + s * shape.hidden + column;
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          Floats value[kParts];
          for (int part = 0; part < kParts; ++part) value[part] = load(right + lane * lane_stride + part * kWidth);
          for (int r = 0; r < kRows; ++r) {
            for (int part = 0; part < kParts; ++part) sum[r][part] += left[r * kLanes + lane] * value[part];
          }
        }
      }
      for (int r = 0; r < kRows; ++r) {
        for (int part = 0; part < kParts; ++part) {
          store(d_weight + (row + r) * shape.hidden + column + part * kWidth, sum[r][part]);
        }
      }
    }
  }
}

void add_input_gradient(const LstmShape& shape, const float* d_gates, const float* x, float* d_bias,
                        float* d_input_weight) {
  for (std::int64_t row = 0; row < shape.gates(); ++row) {
    for (std::int64_t lane = 0; lane < kLanes; lane += kWidth) {
      const Floats d = load(d_gates + row * kLanes + lane);
      float* bias = d_bias + row * kLanes + lane;
      store(bias, load(bias) + d);
      for (std::int64_t i = 0; i < shape.input; ++i) {
        float* weight = d_input_weight + (row * shape.input + i) * kLanes + lane;
        store(weight, load(weight) + d * load(x + i * kLanes + lane));
      }
    }
  }
}

}  // namespace

const LstmKernel kKernel = {ERGOMETER_KERNEL_NAME, kRows, forward, backward_step, add_weight_gradient,
                            add_input_gradient};

}  // namespace ergometer::workload::ERGOMETER_KERNEL
