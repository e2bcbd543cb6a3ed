#include "device/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ergometer
