// The CUDA source of fused_norm_cuda.cpp, as text for NVRTC. KIND is 0 (fp32), 1 (fp16) or 2 (bf16).
//
// Pictures are rows of C channels (channels-last), `rows` = N * H * W. A thread owns one 16-byte pack of channels, a block
// blockDim.x packs of blockDim.y rows, and blocks of one column share the rows out among gridDim.y. Sums over rows go to
// partial[which][channel][gridDim.y] and are added by one warp a channel, always in the same order.
#pragma once

namespace ergometer::workload::vision {

inline constexpr const char* kFusedNormSource = R"cuda(
#if KIND == 0
#define WIDTH 4
typedef float Element;
#else
#define WIDTH 8
typedef unsigned short Element;
#endif
struct __align__(16) Pack { unsigned word[4]; };

#if KIND == 1
__device__ float to_float(unsigned short bits) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits)); return f; }
__device__ unsigned from_float(float f) {
  unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(f)); return bits;
}
#elif KIND == 2
__device__ float to_float(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }
__device__ unsigned from_float(float f) {  // to the nearest, ties to even
  unsigned u = __float_as_uint(f);
  return f != f ? 0x7fffu : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}
#else
__device__ float to_float(float f) { return f; }
#endif

__device__ void unpack(const Pack& p, float (&v)[WIDTH]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#if KIND == 0
    v[i] = __uint_as_float(p.word[i]);
#else
    v[2 * i] = to_float((unsigned short)(p.word[i] & 0xffffu));
    v[2 * i + 1] = to_float((unsigned short)(p.word[i] >> 16));
#endif
  }
}
__device__ Pack pack(const float (&v)[WIDTH]) {
  Pack p;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#if KIND == 0
    p.word[i] = __float_as_uint(v[i]);
#else
    p.word[i] = from_float(v[2 * i]) | (from_float(v[2 * i + 1]) << 16);
#endif
  }
  return p;
}

// Adds the threads' sums over the rows of a block and writes them to partial.
__device__ void sum_block(const float (&a)[WIDTH], const float (&b)[WIDTH], float* partial, int packs) {
  extern __shared__ float shared[];  // [2 * WIDTH][blockDim.y][blockDim.x]
  const int place = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) {
    shared[k * threads + place] = a[k];
    shared[(WIDTH + k) * threads + place] = b[k];
  }
  __syncthreads();
  for (int o = place; o < 2 * WIDTH * (int)blockDim.x; o += threads) {
    const int k = o / blockDim.x, x = o % blockDim.x, column = blockIdx.x * blockDim.x + x;
    if (column >= packs) continue;
    float sum = 0;
    for (int y = 0; y < (int)blockDim.y; ++y) sum += shared[k * threads + y * blockDim.x + x];
    const int which = k / WIDTH, channel = column * WIDTH + k % WIDTH;
    partial[((long long)which * packs * WIDTH + channel) * gridDim.y + blockIdx.y] = sum;
  }
}
// Sum of one row of partial, the same in all lanes of the warp.
__device__ float sum_partial(const float* from, int count) {
  float sum = 0;
  for (int i = threadIdx.x % 32; i < count; i += 32) sum += from[i];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  return sum;
}

extern "C" __global__ void __launch_bounds__(512) forward_sums(const Pack* __restrict__ x, float* __restrict__ partial, long long rows, int packs) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  float pivot[WIDTH] = {}, sum[WIDTH] = {}, squares[WIDTH] = {};
  if (column < packs) {
    unpack(x[column], pivot);
    const long long step = (long long)gridDim.y * blockDim.y;
#pragma unroll 4
    for (long long row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += step) {
      float v[WIDTH];
      unpack(x[row * packs + column], v);
#pragma unroll
      for (int k = 0; k < WIDTH; ++k) {
        const float d = v[k] - pivot[k];
        sum[k] += d;
        squares[k] = fmaf(d, d, squares[k]);
      }
    }
  }
  sum_block(sum, squares, partial, packs);
}

// saved[0][c]: mean, saved[1][c]: 1 / deviation.
extern "C" __global__ void forward_finish(const Element* __restrict__ x, const float* __restrict__ partial, int count, int channels, double rows,
                                          float eps, float momentum, float* __restrict__ saved, float* __restrict__ running_mean,
                                          float* __restrict__ running_variance, long long* __restrict__ batches) {
  const int channel = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (channel >= channels) return;
  const float sum = sum_partial(partial + (long long)channel * count, count);
  const float squares = sum_partial(partial + (long long)(channels + channel) * count, count);
  if (threadIdx.x % 32 != 0) return;
  const double shift = sum / rows;
  const double variance = fmax(squares / rows - shift * shift, 0.0);
  const double mean = to_float(x[channel]) + shift;
  saved[channel] = (float)mean;
  saved[channels + channel] = (float)(1.0 / sqrt(variance + eps));
  if (running_mean) {
    running_mean[channel] += momentum * ((float)mean - running_mean[channel]);
    running_variance[channel] += momentum * ((float)(variance * rows / fmax(rows - 1, 1.0)) - running_variance[channel]);
  }
  if (batches && channel == 0) *batches += 1;
}

// gain * x + shift is the normalised value.
__device__ void load_gain(const float* __restrict__ saved, const float* __restrict__ weight, const float* __restrict__ bias, int column, int packs,
                          float (&gain)[WIDTH], float (&shift)[WIDTH]) {
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) {
    const int c = column * WIDTH + k;
    gain[k] = weight[c] * saved[packs * WIDTH + c];
    shift[k] = fmaf(-saved[c], gain[k], bias[c]);
  }
}

extern "C" __global__ void __launch_bounds__(512) forward_apply(const Pack* __restrict__ x, const Pack* __restrict__ residual, Pack* __restrict__ y,
                                                                const float* __restrict__ saved, const float* __restrict__ weight,
                                                                const float* __restrict__ bias, long long rows, int packs, int relu) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= packs) return;
  float gain[WIDTH], shift[WIDTH];
  load_gain(saved, weight, bias, column, packs, gain, shift);
  const long long step = (long long)gridDim.y * blockDim.y;
#pragma unroll 4
  for (long long row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += step) {
    const long long at = row * packs + column;
    float v[WIDTH], r[WIDTH] = {};
    unpack(x[at], v);
    if (residual) unpack(residual[at], r);
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
      v[k] = fmaf(v[k], gain[k], shift[k]) + r[k];
      if (relu) v[k] = fmaxf(v[k], 0.0f);
    }
    y[at] = pack(v);
  }
}

// The gradient that reaches the normalisation: that of the output where the activation was open. With a residual the
// output tells where (`y`), else the input does.
__device__ void gradient_at(const Pack* __restrict__ dy, const Pack* __restrict__ y, const float (&v)[WIDTH], const float (&gain)[WIDTH],
                            const float (&shift)[WIDTH], long long at, int relu, float (&g)[WIDTH]) {
  unpack(dy[at], g);
  if (!relu) return;
  float open[WIDTH];
  if (y) {
    unpack(y[at], open);
  } else {
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) open[k] = fmaf(v[k], gain[k], shift[k]);
  }
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) g[k] = open[k] > 0 ? g[k] : 0.0f;
}

// Sums of g and of g * (x - mean) / deviation.
extern "C" __global__ void __launch_bounds__(512) backward_sums(const Pack* __restrict__ dy, const Pack* __restrict__ x, const Pack* __restrict__ y,
                                                                const float* __restrict__ saved, const float* __restrict__ weight,
                                                                const float* __restrict__ bias, float* __restrict__ partial, long long rows,
                                                                int packs, int relu) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum[WIDTH] = {}, product[WIDTH] = {};
  if (column < packs) {
    float gain[WIDTH], shift[WIDTH], mean[WIDTH];
    load_gain(saved, weight, bias, column, packs, gain, shift);
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) mean[k] = saved[column * WIDTH + k];
    const long long step = (long long)gridDim.y * blockDim.y;
#pragma unroll 2
    for (long long row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += step) {
      const long long at = row * packs + column;
      float v[WIDTH], g[WIDTH];
      unpack(x[at], v);
      gradient_at(dy, y, v, gain, shift, at, relu, g);
#pragma unroll
      for (int k = 0; k < WIDTH; ++k) {
        sum[k] += g[k];
        product[k] = fmaf(g[k], v[k] - mean[k], product[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) product[k] *= saved[packs * WIDTH + column * WIDTH + k];
  }
  sum_block(sum, product, partial, packs);
}

extern "C" __global__ void backward_finish(const float* __restrict__ partial, int count, int channels, float* __restrict__ weight_gradient,
                                           float* __restrict__ bias_gradient) {
  const int channel = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (channel >= channels) return;
  const float sum = sum_partial(partial + (long long)channel * count, count);
  const float product = sum_partial(partial + (long long)(channels + channel) * count, count);
  if (threadIdx.x % 32 != 0) return;
  bias_gradient[channel] = sum;
  weight_gradient[channel] = product;
}

// dx = gain * (g - mean(g) - xhat * mean(g * xhat)) (Ioffe and Szegedy 2015, section 3), as a straight line in g and x.
extern "C" __global__ void __launch_bounds__(512) backward_apply(const Pack* __restrict__ dy, const Pack* __restrict__ x, const Pack* __restrict__ y,
                                                                 const float* __restrict__ saved, const float* __restrict__ weight,
                                                                 const float* __restrict__ bias, const float* __restrict__ weight_gradient,
                                                                 const float* __restrict__ bias_gradient, Pack* __restrict__ dx, Pack* __restrict__ dresidual,
                                                                 long long rows, int packs, int relu) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= packs) return;
  float gain[WIDTH], shift[WIDTH], slope[WIDTH], constant[WIDTH];
  load_gain(saved, weight, bias, column, packs, gain, shift);
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) {
    const int c = column * WIDTH + k;
    slope[k] = -gain[k] * saved[packs * WIDTH + c] * weight_gradient[c] / rows;
    constant[k] = -gain[k] * bias_gradient[c] / rows - slope[k] * saved[c];
  }
  const long long step = (long long)gridDim.y * blockDim.y;
#pragma unroll 2
  for (long long row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += step) {
    const long long at = row * packs + column;
    float v[WIDTH], g[WIDTH];
    unpack(x[at], v);
    gradient_at(dy, y, v, gain, shift, at, relu, g);
    if (dresidual) dresidual[at] = pack(g);
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) v[k] = fmaf(gain[k], g[k], fmaf(slope[k], v[k], constant[k]));
    dx[at] = pack(v);
  }
}
)cuda";

}  // namespace ergometer::workload::vision
