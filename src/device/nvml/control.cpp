#include "device/nvml/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/file.hpp"
#include "base/text.hpp"
#include "device/nvml/driver.hpp"
#include "device/nvml/identity.hpp"
#include "device/nvml/visibility.hpp"

namespace ergometer {
namespace nvml {
namespace {

constexpr unsigned kMaxClocks = 4096;
constexpr double kMilli = 1e3, kMega = 1e6;

// What all controls of one GPU share.
struct GpuRef {
  std::shared_ptr<Driver> driver;
  std::shared_ptr<Gpu> gpu;
  std::string name, device_name;  // "GPU 0 (NVIDIA H200)", "NVIDIA H200"
  std::string bus_id;
  std::optional<bool> visible, may_set;
};

// CAP_SYS_ADMIN (bit 21) is what the driver asks for. Root inside a container may lack it.
std::optional<bool> may_set(const HostRoot& root) {
  const auto status = read_file(root.path("/proc/self/status"));
  if (!status) return std::nullopt;
  for (const auto line : split(*status, '\n'))
    if (line.starts_with("CapEff:")) {
      const std::string digits(trim(line.substr(7)));
      const auto mask = std::strtoull(digits.c_str(), nullptr, 16);
      return (mask >> 21 & 1) != 0;
    }
  return std::nullopt;
}

class NvmlControl : public Control {
 public:
  NvmlControl(ControlInfo info, GpuRef gpu) : Control(std::move(info)), gpu_(std::move(gpu)) {}

 protected:
  // Calls one entry of the table for this GPU, found by its UUID each time: its place may have changed.
  template <class... Parameters, class... Arguments>
  Result<void> call(const char* doing, Return (*entry)(Device, Parameters...), Arguments... arguments) {
    if (!entry) return tl::unexpected(error(doing, Return::function_not_found));
    Device device = nullptr;
    Return code = gpu_.driver->resolve(*gpu_.gpu, device);
    if (code == Return::success) code = entry(device, arguments...);
    if (code != Return::success) return tl::unexpected(error(doing, code));
    return {};
  }

  [[nodiscard]] const Api& api() const { return gpu_.driver->api(); }

 private:
  [[nodiscard]] Error error(const char* doing, Return code) const {
    const auto message = fmt::format("cannot {} {} of {}: {}", doing, info_.name, gpu_.name, to_text(code));
    switch (code) {
      case Return::no_permission:
        return {ErrorCode::permission_denied, message, permission_remedy()};
      case Return::not_supported:
      case Return::function_not_found:
        return {ErrorCode::unsupported, message, "this GPU or its driver does not offer it; leave it out"};
      case Return::invalid_argument: {
        const auto range = range_text(info_);
        return {ErrorCode::invalid_argument, message, range.empty() ? "" : "it takes " + range};
      }
      case Return::gpu_is_lost:
      case Return::not_found:
        return {ErrorCode::lost, message, "look at dmesg for Xid messages"};
      default:
        return {ErrorCode::unavailable, message, ""};
    }
  }

  GpuRef gpu_;
};

class PowerLimit final : public NvmlControl {
 public:
  using NvmlControl::NvmlControl;
  Result<ControlValue> get() override { return watts(api().management_limit); }
  Result<ControlValue> effective() override {
    return watts(api().enforced_limit ? api().enforced_limit : api().management_limit);
  }
  Result<void> set(const ControlValue& value) override {
    return call("set", api().set_management_limit, static_cast<unsigned>(std::llround(number_of(value) * kMilli)));
  }

 private:
  Result<ControlValue> watts(Return (*entry)(Device, unsigned*)) {
    unsigned mw = 0;
    if (auto asked = call("read", entry, &mw); !asked) return tl::unexpected(asked.error());
    return ControlValue(Watts(mw / kMilli));
  }
};

// Graphics or memory clock, locked to one value. The driver does not tell what is locked.
class LockedClock final : public NvmlControl {
 public:
  LockedClock(ControlInfo info, GpuRef gpu, ClockKind kind)
      : NvmlControl(std::move(info), std::move(gpu)), kind_(kind) {}
  Result<ControlValue> get() override {
    return fail(ErrorCode::unsupported, info_.name + ": the driver does not tell which clocks are locked");
  }
  Result<void> set(const ControlValue& value) override {
    const auto mhz = static_cast<unsigned>(std::llround(number_of(value) / kMega));
    return call("lock", kind_ == ClockKind::memory ? api().lock_memory_clocks : api().lock_graphics_clocks, mhz, mhz);
  }
  Result<void> reset() override {
    return call("reset", kind_ == ClockKind::memory ? api().reset_memory_clocks : api().reset_graphics_clocks);
  }
  Result<ControlValue> effective() override {
    unsigned mhz = 0;
    if (auto asked = call("read", api().clock, kind_, &mhz); !asked) return tl::unexpected(asked.error());
    return ControlValue(Hertz(mhz * kMega));
  }

 private:
  ClockKind kind_;
};

class Persistence final : public NvmlControl {
 public:
  using NvmlControl::NvmlControl;
  Result<ControlValue> get() override {
    unsigned enabled = 0;
    if (auto asked = call("read", api().persistence, &enabled); !asked) return tl::unexpected(asked.error());
    return ControlValue(std::string(enabled ? "on" : "off"));
  }
  Result<void> set(const ControlValue& value) override {
    return call("set", api().set_persistence, value == ControlValue(std::string("on")) ? 1U : 0U);
  }
};

// A list whose length the driver tells first.
template <class Ask>
std::vector<unsigned> clocks_of(const Ask& ask) {
  unsigned count = 0;
  const Return sized = ask(&count, static_cast<unsigned*>(nullptr));
  if ((sized != Return::insufficient_size && sized != Return::success) || count == 0 || count > kMaxClocks) return {};
  std::vector<unsigned> mhz(count);
  if (ask(&count, mhz.data()) != Return::success) return {};
  mhz.resize(std::min<std::size_t>(count, mhz.size()));
  std::ranges::sort(mhz);
  mhz.erase(std::unique(mhz.begin(), mhz.end()), mhz.end());
  return mhz;
}

void set_choices(ControlInfo& info, const std::vector<unsigned>& mhz) {
  for (const unsigned clock : mhz) info.choices.emplace_back(Hertz(clock * kMega));
}

class Finder {
 public:
  Finder(GpuRef gpu, Device device, ControlDiscovery& out)
      : gpu_(std::move(gpu)), api_(gpu_.driver->api()), device_(device), out_(out) {}

  void find() {
    persistence();
    clocks();
    power();
  }

 private:
  [[nodiscard]] ControlInfo basics(const char* knob, ControlUnit unit, int rank) const {
    ControlInfo info;
    info.name = fmt::format("gpu/{}/{}", gpu_.gpu->index, knob);
    info.backend = "nvml";
    info.device_id = gpu_.gpu->uuid.empty() ? gpu_.bus_id : gpu_.gpu->uuid;
    info.device_name = gpu_.device_name;
    info.unit = unit;
    info.rank = rank;
    info.writers = "root or CAP_SYS_ADMIN";
    info.writable = gpu_.may_set;
    info.visible = gpu_.visible;
    return info;
  }

  void absent(const char* what, const std::string& reason) {
    out_.absences.push_back({"nvml", fmt::format("{} of GPU {}", what, gpu_.gpu->index), reason, ""});
  }

  void persistence() {
    auto info = basics("persistence", ControlUnit::word, 0);
    info.choices = {std::string("off"), std::string("on")};
    auto control = std::make_shared<Persistence>(std::move(info), gpu_);
    const auto now = control->get();
    if (!now) return absent("persistence mode", now.error().message);
    out_.controls.push_back(std::move(control));
  }

  void clocks() {
    const auto memory = clocks_of([&](unsigned* count, unsigned* mhz) {
      return api_.supported_memory_clocks ? api_.supported_memory_clocks(device_, count, mhz)
                                          : Return::function_not_found;
    });
    std::vector<unsigned> graphics;
    if (!memory.empty())
      graphics = clocks_of([&](unsigned* count, unsigned* mhz) {
        return api_.supported_graphics_clocks ? api_.supported_graphics_clocks(device_, memory.back(), count, mhz)
                                              : Return::function_not_found;
      });
    locked("clock", graphics, ClockKind::graphics, api_.lock_graphics_clocks && api_.reset_graphics_clocks);
    locked("memory-clock", memory, ClockKind::memory, api_.lock_memory_clocks && api_.reset_memory_clocks);
  }

  void locked(const char* knob, const std::vector<unsigned>& mhz, ClockKind kind, bool offered) {
    if (!offered || mhz.empty())
      return absent(knob,
                    offered ? "the driver lists no supported clocks" : "the driver's NVML library lacks locked clocks");
    auto info = basics(knob, ControlUnit::hertz, kind == ClockKind::memory ? 2 : 3);
    info.readable = false;
    set_choices(info, mhz);
    out_.controls.push_back(std::make_shared<LockedClock>(std::move(info), gpu_, kind));
  }

  void power() {
    auto info = basics("power", ControlUnit::watts, 4);
    unsigned low = 0, high = 0, normal = 0;
    if (api_.limit_constraints && api_.limit_constraints(device_, &low, &high) == Return::success && low <= high) {
      info.lowest = Watts(low / kMilli);
      info.highest = Watts(high / kMilli);
    }
    if (api_.default_limit && api_.default_limit(device_, &normal) == Return::success)
      info.default_value = Watts(normal / kMilli);
    auto control = std::make_shared<PowerLimit>(std::move(info), gpu_);
    const auto now = control->get();
    if (!now) return absent("power limit", now.error().message);
    out_.controls.push_back(std::move(control));
  }

  GpuRef gpu_;
  const Api& api_;
  Device device_;
  ControlDiscovery& out_;
};

// Which GPUs the command can use. A control must never go to another GPU than the one meant, so an order that is not
// certain leaves all unknown.
void mark_visible(const Host& host, const Environment& environment, std::vector<GpuRef>& gpus,
                  const std::vector<MigInstance>& slices) {
  std::vector<VisibleCandidate> candidates;
  for (const auto& gpu : gpus) candidates.push_back({gpu.gpu->index, gpu.gpu->uuid, gpu.device_name, gpu.bus_id});
  std::optional<CudaDevices> cuda;
  const bool own_order = needs_cuda_order(environment, candidates);
  if (own_order) cuda = ask_cuda(host, environment);
  if (own_order && !cuda) return;
  const auto visibility = resolve_visibility(environment, candidates, slices, cuda);
  for (auto& gpu : gpus)
    gpu.visible =
        std::ranges::any_of(visibility.order, [&](const auto& entry) { return entry.index == gpu.gpu->index; });
}

}  // namespace
}  // namespace nvml

void find_nvml_controls(const Host& host, const std::string& nvml_path, const Environment& environment,
                        ControlDiscovery& out) {
  using namespace nvml;
  const auto absent = [&](const Error& error) {
    out.absences.push_back({"nvml", "controls of NVIDIA GPUs", error.message, error.hint});
  };
  auto driver = Driver::open(host, nvml_path);
  if (!driver) return absent(driver.error());
  const Api& api = (*driver)->api();
  unsigned count = 0;
  if (const Return code = api.count(&count); code != Return::success || count > kMaxGpus)
    return absent({ErrorCode::unavailable, "NVML does not count its GPUs: " + to_text(code), ""});
  std::vector<GpuRef> gpus;
  std::vector<Device> devices;
  std::vector<MigInstance> slices;
  const auto allowed = may_set(host.root);
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (const Return code = api.handle_by_index(i, &device); code != Return::success) {
      absent({ErrorCode::lost, fmt::format("GPU {}: {}", i, to_text(code)), ""});
      continue;
    }
    GpuRef ref;
    ref.driver = *driver;
    ref.gpu = std::make_shared<Gpu>();
    ref.gpu->index = static_cast<int>(i);
    ref.gpu->uuid = text_of(api.uuid, device);
    ref.device_name = text_of(api.name, device);
    ref.name = fmt::format("GPU {} ({})", i, ref.device_name);
    ref.bus_id = bus_id_of(api, device);
    ref.may_set = allowed;
    const auto own = slices_of(api, device, static_cast<int>(i));
    slices.insert(slices.end(), own.begin(), own.end());
    gpus.push_back(std::move(ref));
    devices.push_back(device);
  }
  mark_visible(host, environment, gpus, slices);
  for (std::size_t i = 0; i < gpus.size(); ++i) Finder(gpus[i], devices[i], out).find();
}

}  // namespace ergometer
