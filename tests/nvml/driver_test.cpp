// GPUs and drivers that fail while the sensors run, and many threads at once.
#include <atomic>
#include <thread>

#include "nvml/nvml_world.hpp"

namespace ergometer::test {
namespace {

TEST(NvmlDriver, F45_LostGpuHidesNoOther) {
  for (const char* code : {"15", "999"}) {
    NvmlWorld world;
    world.discover(std::string("gpus = 4\ngpu1.fault = * ") + code + " 10 20\n");
    auto all = world.poll_all({"gpu0-energy", "gpu1-energy", "gpu2-energy", "gpu1"}, 30, 1);
    EXPECT_TRUE(all["gpu0-energy"].failures.empty());
    EXPECT_TRUE(all["gpu2-energy"].failures.empty());
    EXPECT_EQ(all["gpu0-energy"].rows.size(), 31U);
    for (const char* name : {"gpu1-energy", "gpu1"}) {
      ASSERT_EQ(all[name].failures.size(), 10U) << name;
      EXPECT_EQ(all[name].failures.front(), (std::pair{10.0, ErrorCode::lost}));
      EXPECT_EQ(all[name].rows.size(), 21U);
      EXPECT_EQ(all[name].t.back(), 30);
    }
    // One sick GPU among healthy ones is no reason to start the library anew under them.
    EXPECT_EQ(world.fake.calls("nvmlShutdown"), 0U);
  }
}

TEST(NvmlDriver, F47_NoReadingAfterTheFailure) {
  NvmlWorld world;
  world.discover("gpu.power = 250\ngpu.fault = * 15 11\n");
  world.advance_to(1);
  auto all = world.poll_all({"gpu0", "gpu0-samples"}, 20, 1);
  EXPECT_EQ(all["gpu0"].rows.size(), 10U);
  EXPECT_EQ(all["gpu0"].failures.size(), 10U);
  EXPECT_LT(all["gpu0-samples"].t.back(), 11);
  for (const auto& [t, code] : all["gpu0"].failures) EXPECT_EQ(code, ErrorCode::lost) << t;
}

TEST(NvmlDriver, F47_SampleBufferHasNoSamplesOfTheLostTime) {
  NvmlWorld world;
  world.discover("gpu.fault = * 15 10 11\n");
  const auto series = world.poll("gpu0-samples", 15, 0.5);
  double widest = 0;
  for (std::size_t i = 1; i < series.t.size(); ++i) widest = std::max(widest, series.t[i] - series.t[i - 1]);
  EXPECT_NEAR(widest, 1.02, 1e-6);
  EXPECT_NEAR(series.t.back(), 15, 1e-6);
}

TEST(NvmlDriver, F48_RestartsSlowlyUntilTheDriverIsBack) {
  NvmlWorld world;
  world.discover("gpus = 2\nfault = * 999 30 90\n");
  auto all = world.poll_all({"gpu0", "gpu1", "gpu0-energy", "gpu0-slow", "gpu0-samples"}, 120, 1);
  for (auto& [name, series] : all) {
    EXPECT_GE(series.failures.size(), 60U) << name;
    EXPECT_LE(series.failures.size(), 66U) << name;
    EXPECT_EQ(series.failures.front().first, 30) << name;
    EXPECT_LE(series.failures.back().first, 95) << name;
    EXPECT_NEAR(series.t.back(), 120, 1e-6) << name;
  }
  const auto tries = world.fake.calls("nvmlInit");
  EXPECT_GE(tries, 3U);
  EXPECT_LE(tries, 16U);
}

TEST(NvmlDriver, UninitialisedDriverIsStartedAnew) {
  NvmlWorld world;
  world.discover("");
  // As if another part of the process had shut the library down.
  const auto library = Library::open(FAKE_NVML);
  ASSERT_TRUE(library);
  (*library)->function<int()>("nvmlShutdown")();
  const auto series = world.poll("gpu0", 20, 1);
  ASSERT_FALSE(series.failures.empty());
  EXPECT_LE(series.failures.size(), 7U);
  EXPECT_EQ(series.t.back(), 20);
}

TEST(NvmlDriver, F52_BlockedCallDelaysNoOtherSensor) {
  NvmlWorld world;
  world.discover("gpus = 2\ngpu0.block = nvmlDeviceGetTotalEnergyConsumption 4.5 2\n");
  world.poll_all({"gpu0-energy"}, 4, 1);
  world.advance_to(5);
  std::atomic<bool> back{false};
  std::thread blocked([&, sensor = world.sensor("gpu0-energy")] {
    Readings readings;
    EXPECT_TRUE(sensor->read(readings));
    back = true;
  });
  while (world.fake.calls("nvmlDeviceGetTotalEnergyConsumption") < 8U) std::this_thread::yield();
  auto all = world.poll_all({"gpu0", "gpu0-slow", "gpu0-samples", "gpu1-energy", "gpu1"}, 15, 1);
  EXPECT_FALSE(back);  // the others have answered for ten seconds of their time meanwhile
  for (auto& [name, series] : all) EXPECT_TRUE(series.failures.empty()) << name;
  EXPECT_EQ(all["gpu1-energy"].rows.size(), 11U);
  blocked.join();
}

TEST(NvmlDriver, DiscoveredAndForgottenClosesTheLibrary) {
  NvmlWorld world;
  world.discover("gpus = 2\n");
  EXPECT_EQ(world.fake.calls("nvmlShutdown"), 0U);
  world.found.sensors.clear();
  EXPECT_EQ(world.fake.calls("nvmlShutdown"), 1U);
}

TEST(NvmlDriver, SickDriverIsNotClosed) {
  NvmlWorld world;
  world.discover("gpu.fault = * 15 1\n");
  world.poll("gpu0", 2, 1);
  world.found.sensors.clear();
  EXPECT_EQ(world.fake.calls("nvmlShutdown"), 0U);
}

TEST(NvmlDriver, ManyThreadsWithFaultsAndRestarts) {
  NvmlWorld world;
  world.discover("gpus = 4\ngpu.gpm.2 = 50\ngpu1.fault = * 15 3 8\nfault = * 999 12 20\n");
  std::atomic<bool> stop{false};
  std::atomic<int> rows{0}, failures{0};
  std::vector<std::thread> threads;
  for (const auto& sensor : world.found.sensors)
    threads.emplace_back([&, sensor] {
      while (!stop) {
        Readings readings;
        if (sensor->read(readings))
          rows += static_cast<int>(readings.rows.size());
        else
          ++failures;
        std::this_thread::yield();
      }
    });
  for (int k = 0; k < 300; ++k) {
    world.advance_to(0.1 * k);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_GT(rows, 0);
  EXPECT_GT(failures, 0);
  // All is well again at the end.
  world.advance_to(40);
  for (const auto& sensor : world.found.sensors) {
    Readings readings;
    EXPECT_TRUE(sensor->read(readings)) << sensor->info().name;
  }
}

}  // namespace
}  // namespace ergometer::test
