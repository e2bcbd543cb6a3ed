#include "device/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

using test::TempDir;
using testing::HasSubstr;

// A host whose tree is empty and whose libraries cannot be loaded, unless a test says otherwise.
Host empty_host(const TempDir& dir) {
  return Host{HostRoot(dir.path()),
              [](const std::string& name) -> Result<std::shared_ptr<Library>> {
                return fail(ErrorCode::not_found, name + ": not there");
              },
              std::make_shared<SystemClock>()};
}

TEST(Registry, UnknownInterfaceSuggestsTheNearest) {
  TempDir dir;
  DiscoverOptions options;
  options.only = {"nvlm"};
  const auto found = discover(empty_host(dir), options);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("nvlm"));
  EXPECT_THAT(found.error().hint, HasSubstr("\"nvml\""));
}

TEST(Registry, FilesAreAskedForAndOnlyWhereTheyBelong) {
  TempDir dir;
  for (const char* request : {"replay", "replay=", "fake"}) {
    DiscoverOptions options;
    options.only = {request};
    const auto found = discover(empty_host(dir), options);
    ASSERT_FALSE(found) << request;
    EXPECT_THAT(found.error().hint, HasSubstr("=FILE"));
  }
  DiscoverOptions options;
  options.only = {"rapl=x"};
  EXPECT_FALSE(discover(empty_host(dir), options));
}

TEST(Registry, AMachineWithoutSensorsIsNoError) {
  TempDir dir;
  dir.write("/proc/stat", "cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 10 0 10 80 0 0 0 0 0 0\n");
  const auto found = discover(empty_host(dir), DiscoverOptions{});
  ASSERT_TRUE(found);
  std::set<std::string> absent;
  for (const auto& absence : found->node.absences) {
    absent.insert(absence.interface.substr(0, absence.interface.find('-')));
    EXPECT_FALSE(absence.reason.empty()) << absence.interface;
  }
  for (const char* backend : {"nvml", "rapl"}) EXPECT_TRUE(absent.count(backend)) << backend;
}

TEST(Registry, SensorNamesAreUnique) {
  const auto found = discover(Host::real(), DiscoverOptions{});
  ASSERT_TRUE(found);
  std::set<std::string> names;
  for (const auto& sensor : found->sensors) {
    EXPECT_TRUE(names.insert(sensor->info().name).second) << sensor->info().name;
    std::set<std::string> columns;
    for (const auto& channel : sensor->info().channels)
      EXPECT_TRUE(columns.insert(channel.column).second) << sensor->info().name << " " << channel.column;
  }
}

// An AMD card at 285 W and an Intel card with a counter.
void add_other_gpus(const TempDir& dir) {
  dir.write("/sys/class/drm/card0/device/uevent", "DRIVER=amdgpu\nPCI_ID=1002:740C\nPCI_SLOT_NAME=0000:03:00.0\n");
  dir.write("/sys/class/drm/card0/device/hwmon/hwmon1/name", "amdgpu\n");
  dir.write("/sys/class/drm/card0/device/hwmon/hwmon1/power1_average", "285000000\n");
  dir.write("/sys/class/drm/card1/device/uevent", "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:04:00.0\n");
  dir.write("/sys/class/drm/card1/device/hwmon/hwmon2/name", "xe\n");
  dir.write("/sys/class/drm/card1/device/hwmon/hwmon2/energy1_input", "1000000\n");
}

std::vector<std::string> gpu_domains(const Discovery& found) {
  std::set<std::string> domains;
  for (const auto& sensor : found.sensors)
    for (const auto& channel : sensor->info().channels)
      if (channel.scope == Scope::gpu && channel.method) domains.insert(channel.domain + " " + channel.device);
  return {domains.begin(), domains.end()};
}

TEST(Registry, GpusOfSeveralDriversAreNumberedOn) {
  TempDir dir;
  add_other_gpus(dir);
  auto search = SensorSearch::begin(empty_host(dir), {});
  ASSERT_TRUE(search);
  auto found = search->quick();
  ASSERT_TRUE(found);
  EXPECT_THAT(gpu_domains(*found), testing::ElementsAre("gpu/0 PCI-0000:03:00.0", "gpu/1 PCI-0000:04:00.0"))
      << "without an NVIDIA driver they are there at once";
  search->finish(*found);
  ASSERT_EQ(found->node.gpus.size(), 2u);
  EXPECT_EQ(found->node.gpus[1].index, 1);
}

TEST(Registry, NvidiaKeepsItsNumbers) {
  TempDir dir;
  add_other_gpus(dir);
  dir.write("/sys/module/nvidia/version", "580.159.04\n");
  auto host = empty_host(dir);
  host.load = [](const std::string& name) { return Library::open(name.starts_with("libnvidia") ? FAKE_NVML : name); };
  auto search = SensorSearch::begin(host, {});
  ASSERT_TRUE(search);
  auto found = search->quick();
  ASSERT_TRUE(found);
  EXPECT_TRUE(gpu_domains(*found).empty()) << "they wait for NVIDIA's numbers";
  search->finish(*found);
  EXPECT_THAT(gpu_domains(*found), testing::ElementsAre("gpu/0 GPU-00000000-0000-0000-0000-000000000000",
                                                        "gpu/1 PCI-0000:03:00.0", "gpu/2 PCI-0000:04:00.0"));
  std::set<std::string> names;
  for (const auto& sensor : found->sensors) EXPECT_TRUE(names.insert(sensor->info().name).second);
  EXPECT_TRUE(names.contains("gpu1"));
  EXPECT_TRUE(names.contains("gpu2"));
  ASSERT_EQ(found->node.gpus.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(found->node.gpus[static_cast<std::size_t>(i)].index, i);
}

TEST(Registry, ALibraryThatHangsAtLoadIsLeftOut) {
  TempDir dir;
  auto released = std::make_shared<StopSignal>();
  auto host = empty_host(dir);
  host.load = [released](const std::string& name) -> Result<std::shared_ptr<Library>> {
    SystemClock clock;
    clock.sleep_until(clock.now() + std::chrono::seconds(20), *released);
    return fail(ErrorCode::not_found, name);
  };
  const auto found = discover(host, DiscoverOptions{}, std::chrono::milliseconds(200));
  released->request();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->warnings, testing::Contains(testing::Field(&Warning::code, "sensor-timeout")));
  EXPECT_THAT(found->node.absences, testing::Contains(testing::Field(&Absence::interface, "nvml")));
}

TEST(Registry, ASlowControllerHoldsNoDriverBack) {
  TempDir dir;
  dir.write("/dev/ipmi0", "");
  auto released = std::make_shared<StopSignal>();
  auto slow_done = std::make_shared<std::atomic<bool>>(false);
  auto host = empty_host(dir);
  host.load = [released, slow_done](const std::string& name) -> Result<std::shared_ptr<Library>> {
    if (name.find("freeipmi") != std::string::npos) {
      SystemClock clock;
      clock.sleep_until(clock.now() + std::chrono::seconds(20), *released);
      *slow_done = true;
    }
    return fail(ErrorCode::not_found, name);
  };
  auto search = SensorSearch::begin(host, DiscoverOptions{}, std::chrono::seconds(60));
  ASSERT_TRUE(search);
  auto found = search->quick();
  ASSERT_TRUE(found);
  const auto absent = [&](const char* interface) {
    return std::any_of(found->node.absences.begin(), found->node.absences.end(),
                       [&](const Absence& a) { return a.interface == interface; });
  };
  while (!absent("nvml")) ASSERT_TRUE(search->next(*found));
  EXPECT_FALSE(*slow_done);
  released->request();
  search->finish(*found);
  EXPECT_TRUE(absent("ipmi"));
}

TEST(Registry, NodeMetersMayNameTheirTarget) {
  TempDir dir;
  dir.write("m.csv", "time_s,power_w\n");
  DiscoverOptions options;
  options.only = {"meter=" + (dir / "m.csv").string(), "meter-command=echo 1"};
  const auto found = discover(empty_host(dir), options);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->sensors.size(), 2u);
  options.only = {"redfish="};
  EXPECT_FALSE(discover(empty_host(dir), options));
  options.only = {"slurm=x"};
  EXPECT_FALSE(discover(empty_host(dir), options));
}

}  // namespace
}  // namespace ergometer
