#include <fmt/format.h>

#include <array>

#include "device/load/load.hpp"

namespace ergometer {
namespace {

// The parts of the CUDA driver API that are used, by NVIDIA's documentation of it.
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
constexpr int kMultiprocessors = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int kNoDevice = 100, kInvalidDevice = 101, kInvalidValue = 1;

constexpr unsigned kBlocksPerSm = 8, kThreads = 256;

// burn(ns): eight chains of multiply-adds in each thread until %globaltimer has gone on by ns. The store cannot happen
// (values stay between 0 and 2); it keeps the arithmetic alive.
constexpr const char* kPtx = R"ptx(
.version 6.0
.target sm_50
.address_size 64
.visible .entry burn(.param .u64 length)
{
  .reg .u64 %begin, %now, %passed, %length, %nowhere;
  .reg .f32 %a, %b, %c, %d, %e, %f, %g, %h, %m, %n;
  .reg .u32 %i;
  .reg .pred %more, %never;
  ld.param.u64 %length, [length];
  mov.u64 %begin, %globaltimer;
  mov.u64 %nowhere, 0;
  mov.f32 %a, 0f3F800000; mov.f32 %b, %a; mov.f32 %c, %a; mov.f32 %d, %a;
  mov.f32 %e, %a; mov.f32 %f, %a; mov.f32 %g, %a; mov.f32 %h, %a;
  mov.f32 %m, 0f3F7FBE77; mov.f32 %n, 0f3A83126F;
outer:
  mov.u32 %i, 0;
inner:
  fma.rn.f32 %a, %a, %m, %n; fma.rn.f32 %b, %b, %m, %n; fma.rn.f32 %c, %c, %m, %n; fma.rn.f32 %d, %d, %m, %n;
  fma.rn.f32 %e, %e, %m, %n; fma.rn.f32 %f, %f, %m, %n; fma.rn.f32 %g, %g, %m, %n; fma.rn.f32 %h, %h, %m, %n;
  fma.rn.f32 %a, %a, %m, %n; fma.rn.f32 %b, %b, %m, %n; fma.rn.f32 %c, %c, %m, %n; fma.rn.f32 %d, %d, %m, %n;
  fma.rn.f32 %e, %e, %m, %n; fma.rn.f32 %f, %f, %m, %n; fma.rn.f32 %g, %g, %m, %n; fma.rn.f32 %h, %h, %m, %n;
  add.u32 %i, %i, 1;
  setp.lt.u32 %more, %i, 64;
  @%more bra inner;
  mov.u64 %now, %globaltimer;
  sub.u64 %passed, %now, %begin;
  setp.lt.u64 %more, %passed, %length;
  @%more bra outer;
  add.f32 %a, %a, %b; add.f32 %c, %c, %d; add.f32 %e, %e, %f; add.f32 %g, %g, %h;
  add.f32 %a, %a, %c; add.f32 %e, %e, %g; add.f32 %a, %a, %e;
  setp.gt.f32 %never, %a, 0f7F000000;
  @%never st.global.f32 [%nowhere], %a;
  ret;
}
)ptx";

struct Driver {
  std::shared_ptr<Library> library;
  int (*init)(unsigned) = nullptr;
  int (*device_by_bus)(int*, const char*) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*retain)(Context*, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*set_current)(Context) = nullptr;
  int (*load_module)(Module*, const void*) = nullptr;
  int (*get_function)(Function*, Module, const char*) = nullptr;
  int (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**) = nullptr;
  int (*synchronise)() = nullptr;
  int (*error_text)(int, const char**) = nullptr;

  [[nodiscard]] std::string describe(int code) const {
    const char* text = nullptr;
    if (error_text && error_text(code, &text) == 0 && text) return text;
    return fmt::format("error {}", code);
  }
};

Result<Driver> open_driver(const Host& host) {
  Driver d;
  auto library = host.load("libcuda.so.1");
  if (!library)
    return fail(ErrorCode::not_found, "the CUDA driver cannot be opened: " + library.error().message,
                "calibrate without a load on GPUs: --device cpu");
  d.library = std::move(*library);
  bool complete = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(d.library->symbol(name));
    complete = complete && function;
  };
  find(d.init, "cuInit");
  find(d.device_by_bus, "cuDeviceGetByPCIBusId");
  find(d.attribute, "cuDeviceGetAttribute");
  find(d.retain, "cuDevicePrimaryCtxRetain");
  find(d.release, "cuDevicePrimaryCtxRelease_v2");
  find(d.set_current, "cuCtxSetCurrent");
  find(d.load_module, "cuModuleLoadData");
  find(d.get_function, "cuModuleGetFunction");
  find(d.launch, "cuLaunchKernel");
  find(d.synchronise, "cuCtxSynchronize");
  find(d.error_text, "cuGetErrorString");
  if (!complete) return fail(ErrorCode::unsupported, "the CUDA driver is too old: CUDA 11.0 or later is needed");
  return d;
}

class CudaLoad final : public Load {
 public:
  CudaLoad(Driver driver, std::string name, int device)
      : driver_(std::move(driver)), name_(std::move(name)), device_(device) {}
  ~CudaLoad() override {
    if (context_) driver_.release(device_);
  }

  Result<void> prepare() {
    int sms = 0;
    if (auto done = check(driver_.retain(&context_, device_), "use"); !done) return done;
    if (auto done = check(driver_.set_current(context_), "use"); !done) return done;
    if (auto done = check(driver_.attribute(&sms, kMultiprocessors, device_), "ask"); !done) return done;
    blocks_ = static_cast<unsigned>(sms) * kBlocksPerSm;
    Module module = nullptr;
    if (auto done = check(driver_.load_module(&module, kPtx), "load a kernel on"); !done) return done;
    return check(driver_.get_function(&function_, module, "burn"), "load a kernel on");
  }

  [[nodiscard]] std::string name() const override { return name_; }

  Result<void> burn(Nanos length) override {
    // The context belongs to the calling thread.
    if (auto done = check(driver_.set_current(context_), "use"); !done) return done;
    auto ns = static_cast<unsigned long long>(length.count());
    std::array<void*, 1> arguments{&ns};
    const int launched =
        driver_.launch(function_, blocks_, 1, 1, kThreads, 1, 1, 0, nullptr, arguments.data(), nullptr);
    if (auto done = check(launched, "start a kernel on"); !done) return done;
    return check(driver_.synchronise(), "wait for");
  }

 private:
  [[nodiscard]] Result<void> check(int code, const char* what) const {
    if (code == 0) return {};
    return fail(ErrorCode::unavailable, fmt::format("cannot {} {}: {}", what, name_, driver_.describe(code)));
  }

  Driver driver_;
  std::string name_;
  int device_;
  Context context_ = nullptr;
  Function function_ = nullptr;
  unsigned blocks_ = 0;
};

}  // namespace

Result<std::unique_ptr<Load>> make_cuda_load(const Host& host, const GpuInfo& gpu) {
  auto driver = open_driver(host);
  if (!driver) return tl::unexpected(driver.error());
  const std::string name = fmt::format("GPU {} ({})", gpu.index, gpu.name);
  if (const int code = driver->init(0); code != 0 && code != kNoDevice)
    return fail(ErrorCode::unavailable, fmt::format("the CUDA driver does not start: {}", driver->describe(code)));
  int device = 0;
  const int code = driver->device_by_bus(&device, gpu.pci_bus_id.c_str());
  if (code == kNoDevice || code == kInvalidDevice || code == kInvalidValue)
    return fail(ErrorCode::not_found, name + " cannot be used by this process",
                "look at CUDA_VISIBLE_DEVICES; a GPU in MIG mode has no load of its own");
  if (code != 0) return fail(ErrorCode::unavailable, fmt::format("cannot find {}: {}", name, driver->describe(code)));
  auto load = std::make_unique<CudaLoad>(std::move(*driver), name, device);
  if (auto ready = load->prepare(); !ready) return tl::unexpected(ready.error());
  return std::unique_ptr<Load>(std::move(load));
}

}  // namespace ergometer
