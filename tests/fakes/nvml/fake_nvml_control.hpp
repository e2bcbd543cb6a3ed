// The fake NVML in a test's own process: opens the library, controls it, and gives a Host that lives in its time.
// Used by every area whose tests or benchmarks need GPUs.
#pragma once

#include <memory>
#include <string>

#include "device/host.hpp"

namespace ergometer::test {

// One scenario at a time in a process: the library's state is global. Resets it at both ends.
class FakeNvml {
 public:
  explicit FakeNvml(const std::string& library_path) : path_(library_path) {
    auto opened = Library::open(library_path);
    if (opened) library_ = *opened;
    reset();
  }
  ~FakeNvml() { reset(); }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  [[nodiscard]] bool ok() const { return library_ != nullptr; }
  [[nodiscard]] const std::string& path() const { return path_; }
  void set_time(MonoTime mono, WallTime wall) const {
    if (const auto f = entry<void(std::int64_t, std::int64_t)>("fake_nvml_set_time_ns")) f(to_ns(mono), to_ns(wall));
  }
  // Plays a scenario file from now; the number of lines that were not understood.
  int load(const std::string& scenario) const {
    const auto f = entry<int(const char*)>("fake_nvml_load");
    return f ? f(scenario.c_str()) : -1;
  }
  [[nodiscard]] std::uint64_t calls(const char* function) const {
    const auto f = entry<std::uint64_t(const char*)>("fake_nvml_calls");
    return f ? f(function) : 0;
  }

 private:
  template <class Function>
  [[nodiscard]] Function* entry(const char* name) const {
    return library_ ? library_->function<Function>(name) : nullptr;
  }
  void reset() const {
    if (const auto f = entry<void()>("fake_nvml_reset")) f();
  }
  std::string path_;
  std::shared_ptr<Library> library_;
};

}  // namespace ergometer::test
