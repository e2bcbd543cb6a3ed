#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "analysis/summarise.hpp"
#include "fakes/nvml/fake_nvml_control.hpp"
#include "measure/session.hpp"
#include "store/run_reader.hpp"
#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr MonoTime kStart = mono_ns(5'000'000'000'000);
constexpr WallTime kWallStart = wall_ns(1'800'000'000'000'000'000);

constexpr const char* kCounter = R"(
[[sensor]]
name = "package"
domain = "package/0"
scope = "package"
counter = true
interval = "1s"
shape = { kind = "constant", value_w = 100 }
)";

Summary summarise(const std::filesystem::path& dir) {
  auto reader = RunReader::open(dir);
  if (!reader) {
    ADD_FAILURE() << reader.error().message;
    return {};
  }
  Summariser summariser(reader->manifest());
  for (const auto& node : reader->nodes()) {
    summariser.add_node(node, reader->regions(node.name).value(), reader->events(node.name).value());
    for (const auto& sensor : reader->sensors(node.name)) {
      const auto trace = reader->samples(node.name, sensor);
      EXPECT_TRUE(trace) << (trace ? "" : trace.error().message);
      if (trace) summariser.add_trace(node.name, *trace);
    }
  }
  return summariser.finish();
}

std::vector<Event> events_of(const std::filesystem::path& dir) {
  auto reader = RunReader::open(dir);
  std::vector<Event> all;
  if (!reader) return all;
  for (const auto& node : reader->nodes()) {
    const auto events = reader->events(node.name);
    EXPECT_TRUE(events);
    if (events) all.insert(all.end(), events->begin(), events->end());
  }
  return all;
}

std::size_t count(const std::vector<Event>& events, const std::string& source, const std::string& kind) {
  return static_cast<std::size_t>(std::count_if(
      events.begin(), events.end(), [&](const Event& event) { return event.source == source && event.kind == kind; }));
}

// A machine with fake sensors in simulated time; the test's thread is one of its participants.
struct World {
  explicit World(const std::string& scenario = {}, std::function<void(MonoTime)> on_advance = {})
      : clock(std::make_shared<SteppedClock>(kStart, kWallStart, std::move(on_advance))), self(*clock) {
    host.root = HostRoot(files / "root");
    host.load = &Library::open;
    host.clock = clock;
    options.run_dir = files / "run";
    if (scenario.empty()) return;
    files.write("fake.toml", scenario);
    options.discover.only = {"fake=" + (files / "fake.toml").string()};
  }
  void sleep(Nanos length) {
    StopSignal never;
    clock->sleep_until(clock->now() + length, never);
  }
  std::unique_ptr<Session> start() {
    auto session = Session::start(host, options);
    if (session) return std::move(*session);
    ADD_FAILURE() << session.error().message;
    return nullptr;
  }
  // A command of `length` under measurement.
  Manifest measure(Nanos length) {
    const auto session = start();
    if (!session) return {};
    session->command_begins();
    sleep(length);
    session->command_ended(0, std::nullopt);
    auto manifest = session->stop();
    EXPECT_TRUE(manifest) << (manifest ? "" : manifest.error().message);
    left_thread_behind = session->left_thread_behind();
    return manifest.value_or(Manifest{});
  }

  test::TempDir files;
  std::shared_ptr<SteppedClock> clock;
  Participant self;
  Host host;
  SessionOptions options;
  bool left_thread_behind = false;
};

const DomainEnergy* domain(const Summary& summary, const std::string& name) {
  for (const auto& node : summary.nodes)
    for (const auto& d : node.domains)
      if (d.domain == name) return &d;
  return nullptr;
}

TEST(Session, FourGpusAtHundredWattsForAnHour) {
  test::FakeNvml fake(FAKE_NVML);
  ASSERT_TRUE(fake.ok());
  const auto wall = [](MonoTime t) { return wall_ns(to_ns(kWallStart) + to_ns(t) - to_ns(kStart)); };
  World world({}, [&](MonoTime t) { fake.set_time(t, wall(t)); });
  fake.set_time(kStart, kWallStart);
  world.files.write("scenario", "gpus = 4\ngpu.power = 100\n");
  ASSERT_EQ(fake.load((world.files / "scenario").string()), 0);
  world.options.discover.only = {"nvml"};
  world.options.discover.nvml_path = fake.path();
  world.measure(1h);

  const auto summary = summarise(world.options.run_dir);
  ASSERT_TRUE(summary.run.energy_j);
  EXPECT_NEAR(*summary.run.energy_j, 1'440'000, 1'440);
  EXPECT_DOUBLE_EQ(summary.run.duration_s.value_or(0), 3600);
  for (const char* name : {"gpu/0", "gpu/1", "gpu/2", "gpu/3"}) {
    const auto* gpu = domain(summary, name);
    ASSERT_TRUE(gpu) << name;
    EXPECT_NEAR(gpu->energy_j.value_or(0), 360'000, 360) << name;
    EXPECT_GT(gpu->coverage, 0.999) << name;
  }
  EXPECT_FALSE(summary.run.partial);
}

TEST(Session, LateDriverJoinsWhileTheCommandRuns) {
  test::FakeNvml fake(FAKE_NVML);
  ASSERT_TRUE(fake.ok());
  const auto wall = [](MonoTime t) { return wall_ns(to_ns(kWallStart) + to_ns(t) - to_ns(kStart)); };
  World world(kCounter, [&](MonoTime t) { fake.set_time(t, wall(t)); });
  fake.set_time(kStart, kWallStart);
  world.files.write("scenario", "gpus = 2\ngpu.power = 100\n");
  ASSERT_EQ(fake.load((world.files / "scenario").string()), 0);
  world.options.discover.only.push_back("nvml");
  world.options.discover.nvml_path = fake.path();
  // A driver that starts only once the command has begun; simulated time stands still for it.
  const auto command_begun = std::make_shared<StopSignal>();
  world.host.load = [command_begun](const std::string& name) {
    SystemClock real;
    real.sleep_until(real.now() + 20s, *command_begun);
    return Library::open(name);
  };
  world.options.late_devices = true;
  const auto session = world.start();
  ASSERT_TRUE(session);
  session->command_begins();
  EXPECT_EQ(RunReader::open(world.options.run_dir).value().nodes().front().sensors.size(), 1U);
  command_begun->request();
  world.sleep(10s);
  session->command_ended(0, std::nullopt);
  const auto manifest = session->stop();
  ASSERT_TRUE(manifest);
  EXPECT_TRUE(manifest->warnings.empty());

  const auto summary = summarise(world.options.run_dir);
  for (const char* name : {"package/0", "gpu/0", "gpu/1"}) {
    ASSERT_TRUE(domain(summary, name)) << name;
    EXPECT_NEAR(domain(summary, name)->energy_j.value_or(0), 1000, 1) << name;
  }
  EXPECT_GT(session->node().sensors.size(), 3U);
}

TEST(Session, LateDriverIsAwaitedWhereItIsRequired) {
  World world(kCounter);
  world.options.discover.only.push_back("nvml");
  world.host.load = [](const std::string& name) -> Result<std::shared_ptr<Library>> {
    return fail(ErrorCode::not_found, name);
  };
  world.options.late_devices = true;
  world.options.require = {"nvml"};
  const auto session = Session::start(world.host, world.options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::unavailable);
}

TEST(Session, F45_OneLostGpuHidesNoOther) {
  test::FakeNvml fake(FAKE_NVML);
  ASSERT_TRUE(fake.ok());
  for (const char* code : {"15", "999"}) {
    const auto wall = [](MonoTime t) { return wall_ns(to_ns(kWallStart) + to_ns(t) - to_ns(kStart)); };
    World world({}, [&](MonoTime t) { fake.set_time(t, wall(t)); });
    fake.set_time(kStart, kWallStart);
    world.files.write("scenario", std::string("gpus = 4\ngpu.power = 100\ngpu1.fault = * ") + code + " 0 inf\n");
    ASSERT_EQ(fake.load((world.files / "scenario").string()), 0);
    world.options.discover.only = {"nvml"};
    world.options.discover.nvml_path = fake.path();
    world.measure(10s);
    const auto summary = summarise(world.options.run_dir);
    ASSERT_TRUE(summary.run.energy_j) << code;
    EXPECT_NEAR(*summary.run.energy_j, 3000, 30) << code;
    EXPECT_TRUE(summary.run.partial) << code;
    for (const char* name : {"gpu/0", "gpu/2", "gpu/3"})
      EXPECT_NEAR(domain(summary, name) ? domain(summary, name)->energy_j.value_or(0) : 0, 1000, 10) << code << name;
  }
}

TEST(Session, F33_StopIsIdempotent) {
  World world(kCounter);
  const auto session = world.start();
  ASSERT_TRUE(session);
  session->command_begins();
  world.sleep(1s);
  session->command_ended(0, std::nullopt);
  const auto first = session->stop();
  const auto written = world.files.read("run/run.json");
  world.sleep(1s);
  const auto second = session->stop();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first->end - *first->begin, Nanos(1s));
  EXPECT_EQ(first->end, second->end);
  EXPECT_EQ(first->clocks.size(), second->clocks.size());
  EXPECT_EQ(world.files.read("run/run.json"), written);
  EXPECT_NEAR(summarise(world.options.run_dir).run.energy_j.value_or(0), 100, 1e-6);
}

TEST(Session, F67_DestructorStopsAndLeavesTheRunIncomplete) {
  World world(kCounter);
  {
    const auto session = world.start();
    ASSERT_TRUE(session);
    session->command_begins();
    world.sleep(3s);
  }
  const auto reader = RunReader::open(world.options.run_dir);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->manifest().state, "running");
  const auto trace = reader->samples(reader->nodes().at(0).name, "package");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->rows(), 4U) << "what was measured is not lost";
}

TEST(SessionDeathTest, F67_ExitWhileMeasuring) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto measure_and = [](void (*leave)()) {
    test::TempDir files;
    files.write("fake.toml", kCounter);
    SessionOptions options;
    options.run_dir = files / "run";
    options.discover.only = {"fake=" + (files / "fake.toml").string()};
    auto session = Session::start(Host::real(), options);
    if (!session) std::_Exit(99);
    [[maybe_unused]] auto* leaked = session->release();
    leave();
  };
  EXPECT_EXIT(measure_and([] { std::exit(3); }), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT(measure_and([] { std::abort(); }), ::testing::KilledBySignal(SIGABRT), "");
}

TEST(Session, F47_LostSensorCoversHalfTheRun) {
  World world(R"(
[[sensor]]
name = "gpu0"
domain = "gpu/0"
scope = "gpu"
interval = "1s"
shape = { kind = "constant", value_w = 250 }
[[sensor.fault]]
kind = "lost"
from = "9500ms"
)");
  world.measure(19s);
  const auto summary = summarise(world.options.run_dir);
  const auto* gpu = domain(summary, "gpu/0");
  ASSERT_TRUE(gpu);
  EXPECT_NEAR(gpu->energy_j.value_or(0), 2375, 250);
  EXPECT_NEAR(gpu->coverage, 0.5, 0.05);
  EXPECT_EQ(count(events_of(world.options.run_dir), "gpu0", "lost"), 1U);
}

TEST(Session, F48_SensorThatReturns) {
  World world(std::string(kCounter) + R"(
[[sensor]]
name = "gpu0"
domain = "gpu/0"
scope = "gpu"
interval = "1s"
shape = { kind = "constant", value_w = 50 }
[[sensor.fault]]
kind = "lost"
from = "30s"
to = "90s"
)");
  world.measure(120s);
  const auto summary = summarise(world.options.run_dir);
  EXPECT_NEAR(domain(summary, "package/0")->energy_j.value_or(0), 12000, 1e-3);
  EXPECT_NEAR(domain(summary, "gpu/0")->energy_j.value_or(0), 3000, 300);
  const auto events = events_of(world.options.run_dir);
  EXPECT_EQ(count(events, "gpu0", "lost"), 1U);
  EXPECT_EQ(count(events, "gpu0", "back"), 1U);
}

TEST(Session, F52_BlockedReadStopsNoOtherSensor) {
  World world(std::string(kCounter) + R"(
[[sensor]]
name = "gpu0"
domain = "gpu/0"
scope = "gpu"
interval = "1s"
shape = { kind = "constant", value_w = 50 }
[[sensor.fault]]
kind = "block"
from = "4s"
to = "40s"
)");
  const auto before = world.clock->now();
  const auto manifest = world.measure(20s);
  EXPECT_TRUE(world.left_thread_behind);
  EXPECT_LE(world.clock->now() - before, Nanos(25s)) << "stop must give up on it";
  const auto reader = RunReader::open(world.options.run_dir);
  ASSERT_TRUE(reader);
  const auto node = reader->nodes().at(0).name;
  EXPECT_EQ(reader->samples(node, "package")->rows(), 21U);
  EXPECT_EQ(reader->samples(node, "gpu0")->rows(), 4U);
  EXPECT_NEAR(domain(summarise(world.options.run_dir), "package/0")->energy_j.value_or(0), 2000, 1e-3);
  EXPECT_EQ(count(events_of(world.options.run_dir), "gpu0", "gap"), 1U);
  // Let the blocked read return before its world ends.
  world.sleep(60s);
}

TEST(Session, F55_WallClockStepsBack) {
  World world(kCounter);
  const auto session = world.start();
  ASSERT_TRUE(session);
  session->command_begins();
  world.sleep(5s);
  world.clock->step_wall(-3600s);
  world.sleep(5s);
  session->command_ended(0, std::nullopt);
  ASSERT_TRUE(session->stop());
  const auto summary = summarise(world.options.run_dir);
  EXPECT_DOUBLE_EQ(summary.run.duration_s.value_or(0), 10);
  EXPECT_NEAR(summary.run.energy_j.value_or(0), 1000, 1e-6);
  const auto events = events_of(world.options.run_dir);
  ASSERT_EQ(count(events, "session", "clock"), 1U);
  const auto clock =
      std::find_if(events.begin(), events.end(), [](const Event& event) { return event.kind == "clock"; });
  EXPECT_THAT(clock->detail, HasSubstr("back by 3600.000 s"));
}

TEST(Session, SuspendIsNotedAndIsNoClockStep) {
  World world(kCounter);
  const auto session = world.start();
  ASSERT_TRUE(session);
  world.sleep(5s);
  world.clock->suspend(600s);
  world.sleep(5s);
  ASSERT_TRUE(session->stop());
  const auto events = events_of(world.options.run_dir);
  EXPECT_EQ(count(events, "session", "suspend"), 1U);
  EXPECT_EQ(count(events, "session", "clock"), 0U);
}

TEST(Session, LiveViewFollows) {
  World world(kCounter);
  const auto session = world.start();
  ASSERT_TRUE(session);
  world.sleep(3s);
  session->command_begins();
  world.sleep(4500ms);
  const auto view = session->live();
  EXPECT_EQ(view.elapsed, Nanos(4500ms));
  ASSERT_EQ(view.domains.size(), 1U);
  EXPECT_EQ(view.domains[0].domain, "package/0");
  EXPECT_NEAR(view.domains[0].power_w.value_or(0), 100, 1e-6);
  EXPECT_NEAR(view.energy_j.value_or(0), 400, 100);
  EXPECT_EQ(view.region, "");
}

TEST(Session, ClockPairsStayFew) {
  World world(kCounter);
  const auto manifest = world.measure(5h);
  EXPECT_LE(manifest.clocks.size(), 722U);
  EXPECT_GE(manifest.clocks.size(), 360U);
  EXPECT_EQ(manifest.clocks.front().mono, kStart);
  EXPECT_EQ(manifest.clocks.back().mono, world.clock->now());
}

TEST(Session, RefusesWhatIsRequiredAndMissing) {
  World world(kCounter);
  world.options.require = {"package", "gpu/0"};
  const auto session = Session::start(world.host, world.options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::unavailable);
  EXPECT_THAT(session.error().message, HasSubstr("\"gpu/0\""));
  EXPECT_FALSE(std::filesystem::exists(world.options.run_dir)) << "nothing may have started";
}

}  // namespace
}  // namespace ergometer
