#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "vision/fused_norm.hpp"
#include "vision/fused_norm_kernels.hpp"

namespace ergometer::workload::vision {
namespace {

using torch::Tensor;

constexpr unsigned kThreads = 512;
constexpr unsigned kWarp = 32;
constexpr std::int64_t kPackBytes = 16;
constexpr std::int64_t kMostColumns = 32;   // packs a block is wide
constexpr std::int64_t kBlocksPerSm = 2;    // of 512 threads: half of what an SM holds, with 64 bytes in flight each
constexpr std::int64_t kRowsPerThread = 4;  // at least: below that a block's sum costs more than its rows

enum Kernel { forward_sums, forward_finish, forward_apply, backward_sums, backward_finish, backward_apply, kKernels };
constexpr std::array kNames{"forward_sums",  "forward_finish",  "forward_apply",
                            "backward_sums", "backward_finish", "backward_apply"};
using Kernels = std::array<CUfunction, kKernels>;

// What is needed of the driver. It is opened, not linked, so that the program starts on machines without one.
struct Driver {
  decltype(&::cuModuleLoadData) load_module = nullptr;
  decltype(&::cuModuleGetFunction) get_function = nullptr;
  decltype(&::cuLaunchKernel) launch = nullptr;

  Driver() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return;
    load_module = reinterpret_cast<decltype(load_module)>(::dlsym(library, "cuModuleLoadData"));
    get_function = reinterpret_cast<decltype(get_function)>(::dlsym(library, "cuModuleGetFunction"));
    launch = reinterpret_cast<decltype(launch)>(::dlsym(library, "cuLaunchKernel"));
  }
  [[nodiscard]] bool complete() const { return load_module && get_function && launch; }
};

const Driver& driver() {
  static const Driver driver;
  return driver;
}

// KIND of fused_norm_kernels.hpp, or -1.
int kind_of(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat32:
      return 0;
    case torch::kFloat16:
      return 1;
    case torch::kBFloat16:
      return 2;
    default:
      return -1;
  }
}

std::optional<std::string> compile_kernels(int kind) {
  const auto* properties = at::cuda::getCurrentDeviceProperties();
  const std::string architecture = fmt::format("--gpu-architecture=compute_{}{}", properties->major, properties->minor);
  const std::string define = fmt::format("-DKIND={}", kind);
  const std::array options{architecture.c_str(), define.c_str(), "--std=c++14"};
  nvrtcProgram program = nullptr;
  if (nvrtcCreateProgram(&program, kFusedNormSource, "fused_norm.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS)
    return std::nullopt;
  std::optional<std::string> ptx;
  if (nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data()) == NVRTC_SUCCESS) {
    std::size_t size = 0;
    if (nvrtcGetPTXSize(program, &size) == NVRTC_SUCCESS) {
      ptx.emplace(size, '\0');
      if (nvrtcGetPTX(program, ptx->data()) != NVRTC_SUCCESS) ptx.reset();
    }
  } else {
    std::size_t size = 0;
    nvrtcGetProgramLogSize(program, &size);
    std::string log(size, '\0');
    nvrtcGetProgramLog(program, log.data());
    TORCH_WARN("fused normalisation is off, NVRTC does not compile it for ", architecture, ": ", log.c_str());
  }
  nvrtcDestroyProgram(&program);
  return ptx;
}

// The kernels of one number format on the current device; null where they cannot be had. Kept as long as the process.
const Kernels* kernels_for(int kind) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, std::optional<Kernels>> known;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace({c10::cuda::current_device(), kind});
  auto& kernels = entry->second;
  if (!is_new) return kernels ? &*kernels : nullptr;
  if (!driver().complete()) return nullptr;
  const auto ptx = compile_kernels(kind);
  if (!ptx) return nullptr;
  CUmodule module = nullptr;
  if (driver().load_module(&module, ptx->c_str()) != CUDA_SUCCESS) return nullptr;
  Kernels found{};
  for (std::size_t i = 0; i < found.size(); ++i)
    if (driver().get_function(&found[i], module, kNames[i]) != CUDA_SUCCESS) return nullptr;
  kernels = found;
  return &*kernels;
}

// How the rows and channels of one tensor are shared out.
struct Partition {
  std::int64_t rows, channels;
  int packs;       // 16-byte columns
  unsigned width;  // elements a pack
  unsigned columns, block_rows, grid_columns, grid_rows;

  explicit Partition(const Tensor& input)
      : rows(input.numel() / input.size(1)),
        channels(input.size(1)),
        packs(static_cast<int>(channels * static_cast<std::int64_t>(input.element_size()) / kPackBytes)),
        width(static_cast<unsigned>(kPackBytes / static_cast<std::int64_t>(input.element_size()))),
        columns(static_cast<unsigned>(std::min<std::int64_t>(packs, kMostColumns))),
        block_rows(kThreads / columns),
        grid_columns((static_cast<unsigned>(packs) + columns - 1) / columns) {
    const std::int64_t blocks = kBlocksPerSm * at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
    const std::int64_t useful = rows / (kRowsPerThread * block_rows);
    grid_rows = static_cast<unsigned>(std::clamp<std::int64_t>(std::min(blocks / grid_columns, useful), 1, blocks));
  }
  [[nodiscard]] unsigned shared_bytes() const { return 2 * width * columns * block_rows * sizeof(float); }
};

template <class... Arguments>
void launch_kernel(CUfunction kernel, dim3 grid, dim3 block, unsigned shared_bytes, Arguments... arguments) {
  std::array<void*, sizeof...(Arguments)> pointers{&arguments...};
  const CUresult code = driver().launch(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes,
                                        c10::cuda::getCurrentCUDAStream(), pointers.data(), nullptr);
  TORCH_CHECK(code == CUDA_SUCCESS, "a kernel of the fused normalisation could not be launched, CUDA error ",
              static_cast<int>(code));
}

void* pointer_to(const Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

Tensor floats(const Tensor& like, at::IntArrayRef sizes) {
  return torch::empty(sizes, torch::TensorOptions().device(like.device()).dtype(torch::kFloat32));
}

class FusedNorm : public torch::autograd::Function<FusedNorm> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, const Tensor& second, torch::nn::BatchNorm2dImpl* norm, bool relu,
                        bool has_residual) {
    const Tensor residual = has_residual ? second : Tensor();
    const Partition s(x);
    const Kernels& kernels = *kernels_for(kind_of(x.scalar_type()));
    const Tensor partial = floats(x, {2, s.channels, s.grid_rows});
    const Tensor saved = floats(x, {2, s.channels});
    Tensor y = torch::empty_like(x);
    const dim3 grid(s.grid_columns, s.grid_rows), block(s.columns, s.block_rows);
    launch_kernel(kernels[Kernel::forward_sums], grid, block, s.shared_bytes(), pointer_to(x), pointer_to(partial),
                  s.rows, s.packs);
    launch_kernel(kernels[Kernel::forward_finish], warps(s.channels), dim3(kFinishThreads), 0, pointer_to(x),
                  pointer_to(partial), static_cast<int>(s.grid_rows), static_cast<int>(s.channels),
                  static_cast<double>(s.rows), static_cast<float>(norm->options.eps()),
                  static_cast<float>(*norm->options.momentum()), pointer_to(saved), pointer_to(norm->running_mean),
                  pointer_to(norm->running_var), pointer_to(norm->num_batches_tracked));
    launch_kernel(kernels[Kernel::forward_apply], grid, block, 0, pointer_to(x), pointer_to(residual), pointer_to(y),
                  pointer_to(saved), pointer_to(weight), pointer_to(bias), s.rows, s.packs, static_cast<int>(relu));
    const bool by_output = relu && has_residual;
    context->save_for_backward({x, weight, bias, saved, by_output ? y : Tensor()});
    context->saved_data["relu"] = relu;
    context->saved_data["residual"] = has_residual;
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved_tensors = context->get_saved_variables();
    const Tensor &x = saved_tensors[0], &weight = saved_tensors[1], &bias = saved_tensors[2], &saved = saved_tensors[3],
                 &y = saved_tensors[4];
    const c10::cuda::CUDAGuard device(x.device());
    const Tensor dy = gradients[0].to(x.scalar_type()).contiguous(torch::MemoryFormat::ChannelsLast);
    const int relu = context->saved_data["relu"].toBool() ? 1 : 0;
    const Partition s(x);
    const Kernels& kernels = *kernels_for(kind_of(x.scalar_type()));
    const Tensor partial = floats(x, {2, s.channels, s.grid_rows});
    Tensor weight_gradient = floats(x, {s.channels}), bias_gradient = floats(x, {s.channels});
    Tensor dx = torch::empty_like(x);
    Tensor dresidual = context->saved_data["residual"].toBool() ? torch::empty_like(x) : Tensor();
    const dim3 grid(s.grid_columns, s.grid_rows), block(s.columns, s.block_rows);
    launch_kernel(kernels[Kernel::backward_sums], grid, block, s.shared_bytes(), pointer_to(dy), pointer_to(x),
                  pointer_to(y), pointer_to(saved), pointer_to(weight), pointer_to(bias), pointer_to(partial), s.rows,
                  s.packs, relu);
    launch_kernel(kernels[Kernel::backward_finish], warps(s.channels), dim3(kFinishThreads), 0, pointer_to(partial),
                  static_cast<int>(s.grid_rows), static_cast<int>(s.channels), pointer_to(weight_gradient),
                  pointer_to(bias_gradient));
    launch_kernel(kernels[Kernel::backward_apply], grid, block, 0, pointer_to(dy), pointer_to(x), pointer_to(y),
                  pointer_to(saved), pointer_to(weight), pointer_to(bias), pointer_to(weight_gradient),
                  pointer_to(bias_gradient), pointer_to(dx), pointer_to(dresidual), s.rows, s.packs, relu);
    return {dx, weight_gradient, bias_gradient, dresidual, Tensor(), Tensor(), Tensor()};
  }

 private:
  static constexpr unsigned kFinishThreads = 128;
  // One warp a channel.
  static dim3 warps(std::int64_t channels) {
    return dim3((static_cast<unsigned>(channels) * kWarp + kFinishThreads - 1) / kFinishThreads);
  }
};

bool is_float_on(const Tensor& tensor, const Tensor& input) {
  return tensor.defined() && tensor.scalar_type() == torch::kFloat32 && tensor.device() == input.device() &&
         tensor.is_contiguous();
}

bool has_form_of(const Tensor& tensor, const Tensor& input) {
  return tensor.sizes() == input.sizes() && tensor.scalar_type() == input.scalar_type() &&
         tensor.device() == input.device() && tensor.is_contiguous(torch::MemoryFormat::ChannelsLast);
}

}  // namespace

bool can_fuse_norm(const torch::nn::BatchNorm2dImpl& norm, const Tensor& input, const Tensor& residual) {
  if (!input.is_cuda() || !norm.is_training() || input.dim() != 4 || input.numel() == 0) return false;
  if (kind_of(input.scalar_type()) < 0 || !input.is_contiguous(torch::MemoryFormat::ChannelsLast)) return false;
  if (input.size(1) * static_cast<std::int64_t>(input.element_size()) % kPackBytes != 0) return false;
  if (residual.defined() && !has_form_of(residual, input)) return false;
  for (const Tensor& part : {norm.weight, norm.bias, norm.running_mean, norm.running_var})
    if (!is_float_on(part, input)) return false;
  if (!norm.options.momentum() || norm.num_batches_tracked.device() != input.device() ||
      norm.num_batches_tracked.scalar_type() != torch::kInt64)
    return false;
  const c10::cuda::CUDAGuard device(input.device());
  return kernels_for(kind_of(input.scalar_type())) != nullptr;
}

Tensor fused_norm(torch::nn::BatchNorm2dImpl& norm, const Tensor& input, bool relu, const Tensor& residual) {
  const c10::cuda::CUDAGuard device(input.device());
  // An undefined tensor cannot be passed.
  return FusedNorm::apply(input, norm.weight, norm.bias, residual.defined() ? residual : input, &norm, relu,
                          residual.defined());
}

}  // namespace ergometer::workload::vision
