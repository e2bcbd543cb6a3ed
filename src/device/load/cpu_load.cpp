#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "device/load/load.hpp"

namespace ergometer {
namespace {

using SteadyClock = std::chrono::steady_clock;

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

// Independent multiply-adds that the compiler makes vectors of; the result is looked at so that they are not left out.
void spin_until(SteadyClock::time_point end, std::atomic<float>& sink) {
  std::array<float, 64> values;
  values.fill(1.0F);
  while (SteadyClock::now() < end) {
    for (int round = 0; round < 200; ++round)
      for (float& v : values) v = v * 0.999F + 0.001F;
  }
  sink.store(values[0], std::memory_order_relaxed);
}

class CpuLoad final : public Load {
 public:
  [[nodiscard]] std::string name() const override {
    return fmt::format("{} CPU thread{}", threads_, threads_ == 1 ? "" : "s");
  }
  Result<void> burn(Nanos length) override {
    const auto end = SteadyClock::now() + length;
    std::vector<std::thread> others;
    others.reserve(static_cast<std::size_t>(threads_));
    for (int i = 1; i < threads_; ++i) others.emplace_back([&] { spin_until(end, sink_); });
    spin_until(end, sink_);
    for (auto& thread : others) thread.join();
    return {};
  }

 private:
  int threads_ = usable_cpus();
  std::atomic<float> sink_{0};
};

}  // namespace

std::unique_ptr<Load> make_cpu_load() { return std::make_unique<CpuLoad>(); }

}  // namespace ergometer
