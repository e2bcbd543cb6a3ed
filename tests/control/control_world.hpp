// A machine of fake files and the fake NVIDIA driver, with all its controls and a guard over them. Used by the tests of
// controls.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/control_guard.hpp"
#include "device/registry.hpp"
#include "fakes/nvml/fake_nvml_control.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::test {

// Time that passes only while somebody waits, so that retries cost nothing.
class JumpClock final : public Clock {
 public:
  MonoTime now() override { return mono_ns(ns_); }
  WallTime wall() override { return wall_ns(ns_ + 1'796'000'000'000'000'000); }
  bool sleep_until(MonoTime deadline, StopSignal&) override {
    ns_ = std::max(ns_, to_ns(deadline));
    ++sleeps;
    if (on_sleep) on_sleep();
    return true;
  }
  int sleeps = 0;
  std::function<void()> on_sleep;

 private:
  std::int64_t ns_ = 1'000'000'000;
};

class ControlWorld : public TempDir {
 public:
  explicit ControlWorld(const std::string& scenario = "", const std::string& library = FAKE_NVML) : nvml_(library) {
    options.nvml_path = library;
    write("scenario", fmt::format("log = {}\n{}", (*this / "writes").string(), scenario));
    EXPECT_EQ(nvml_.load((*this / "scenario").string()), 0);
    write("/proc/sys/kernel/random/boot_id", "boot-one\n");
    host.root = HostRoot(path());
    host.clock = clock;
    host.load = [this](const std::string& name) { return Library::open(name == "libcuda.so.1" ? cuda : name); };
  }
  ~ControlWorld() { found.controls.clear(); }

  void look() { found = discover_controls(host, options); }
  std::shared_ptr<Control> control(const std::string& name) {
    if (found.controls.empty()) look();
    for (const auto& control : found.controls)
      if (control->describe().name == name) return control;
    ADD_FAILURE() << "no control " << name;
    return nullptr;
  }
  Result<std::vector<ControlSetting>> plan(const std::vector<std::string>& texts) {
    if (found.controls.empty()) look();
    std::vector<ControlRequest> requests;
    for (const auto& text : texts) {
      auto request = parse_control_request(text);
      if (!request) return tl::unexpected(request.error());
      requests.push_back(*request);
    }
    return plan_controls(requests, found);
  }
  std::vector<ControlSetting> planned(const std::vector<std::string>& texts) {
    auto settings = plan(texts);
    EXPECT_TRUE(settings) << (settings ? "" : settings.error().message);
    return settings ? *settings : std::vector<ControlSetting>();
  }
  GuardOptions guard_options() const {
    GuardOptions guard;
    guard.holder = "a test";
    guard.places.system_journal = *this / "/run/ergometer/control.journal";
    guard.places.lock = *this / "/run/lock/ergometer-control.lock";
    return guard;
  }
  Result<ControlGuard> guard(const std::vector<std::string>& texts) {
    auto settings = plan(texts);
    if (!settings) return tl::unexpected(settings.error());
    return ControlGuard::acquire(host, *settings, guard_options());
  }
  bool journal_exists() const { return std::filesystem::exists(guard_options().places.system_journal); }
  std::string now(const std::string& name) {
    const auto value = control(name)->get();
    return value ? to_text(*value) : "error: " + value.error().message;
  }

  // The writes to the fake driver so far: "gpu0 nvmlDeviceSetPowerManagementLimit 250000 -> 0".
  std::vector<std::string> writes() const {
    std::vector<std::string> lines;
    std::string text = read("writes");
    for (std::size_t at = 0; at < text.size();) {
      const auto end = text.find('\n', at);
      const auto line = text.substr(at, end - at);
      lines.push_back(line.substr(line.find(' ') + 1));
      at = end + 1;
    }
    return lines;
  }
  std::size_t count_writes(const std::string& part) const {
    const auto all = writes();
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }

  void zone(const std::string& id, const std::string& name, std::int64_t limit_uw, int enabled,
            std::int64_t max_uw = 0) const {
    const auto folder = "/sys/class/powercap/" + id + "/";
    write(folder + "name", name + "\n");
    write(folder + "enabled", fmt::format("{}\n", enabled));
    write(folder + "constraint_0_name", "long_term\n");
    write(folder + "constraint_0_power_limit_uw", fmt::format("{}\n", limit_uw));
    write(folder + "constraint_0_time_window_us", "27983872\n");
    if (max_uw > 0) write(folder + "constraint_0_max_power_uw", fmt::format("{}\n", max_uw));
  }
  void policy(int number, std::int64_t min_khz, std::int64_t max_khz, const std::string& governor) const {
    const auto folder = fmt::format("/sys/devices/system/cpu/cpufreq/policy{}/", number);
    write(folder + "scaling_governor", governor + "\n");
    write(folder + "scaling_available_governors", "performance powersave schedutil \n");
    write(folder + "scaling_min_freq", fmt::format("{}\n", min_khz));
    write(folder + "scaling_max_freq", fmt::format("{}\n", max_khz));
    write(folder + "cpuinfo_min_freq", "800000\n");
    write(folder + "cpuinfo_max_freq", "3500000\n");
    write(folder + "affected_cpus", fmt::format("{}\n", number));
  }

  std::shared_ptr<JumpClock> clock = std::make_shared<JumpClock>();
  Host host;
  DiscoverOptions options;
  ControlDiscovery found;
  std::string cuda = "libcuda-is-not-here.so.1";

 private:
  FakeNvml nvml_;
};

inline std::string problem(const Error& error) { return error.message + " | " + error.hint; }
template <class T>
std::string problem(const Result<T>& result) {
  return result ? std::string("no error") : problem(result.error());
}
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace ergometer::test
