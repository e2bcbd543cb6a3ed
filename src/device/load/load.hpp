// Load: makes a part of the machine draw power for a known time. Used by calibration, which needs to know when the
// power changed; it measures nothing itself.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "device/host.hpp"
#include "model/node.hpp"

namespace ergometer {

class Load {
 public:
  virtual ~Load() = default;
  // "4 CPU threads", "GPU 0 (NVIDIA H200)".
  [[nodiscard]] virtual std::string name() const = 0;
  // Draws power for `length`, from the call to the return (of a GPU within some 50 us of both). One thread at a time.
  [[nodiscard]] virtual Result<void> burn(Nanos length) = 0;
};

// All CPUs that this process may use, one spinning thread each, on vector arithmetic.
[[nodiscard]] std::unique_ptr<Load> make_cpu_load();

// One GPU, through the CUDA driver (libcuda.so.1, opened with host.load) and a kernel as PTX text: fused multiply-adds
// on all SMs until the device's own timer says that the time is over. Needs no toolkit. Errors: no driver, the device
// is not usable by this process (CUDA_VISIBLE_DEVICES), or what the driver said.
[[nodiscard]] Result<std::unique_ptr<Load>> make_cuda_load(const Host& host, const GpuInfo& gpu);

}  // namespace ergometer
