// The estimate of the model backend.
#include "device/model/model.hpp"

#include <unistd.h>

#include "device/fake_tree.hpp"
#include "device/rapl/rapl.hpp"

namespace ergometer::test {
namespace {

void set_stat(const FakeTree& tree, double busy_s, double idle_s) {
  const auto hz = static_cast<double>(::sysconf(_SC_CLK_TCK));
  tree.write("/proc/stat", fmt::format("cpu  {} 0 0 {} 0 0 0 0 0 0\ncpu0 1 0 0 1 0 0 0 0 0 0\nintr 1\n",
                                       static_cast<std::int64_t>(busy_s * hz), static_cast<std::int64_t>(idle_s * hz)));
}

std::shared_ptr<Sensor> find(const FakeTree& tree, DiscoverOptions options = {}) {
  Discovery found;
  discover_model(tree.host(), options, found);
  return sensor_named(found, "model");
}

TEST(Model, EnergyFollowsTheBusyShare) {
  FakeTree tree;
  tree.write("/sys/devices/system/cpu/online", "0-3\n");
  set_stat(tree, 100, 900);
  DiscoverOptions options;
  options.cpu_tdp_w = 100;
  const auto model = find(tree, options);
  const auto& c = channel(*model, "cpu_energy_j");
  EXPECT_FALSE(c.measured);
  EXPECT_FALSE(c.in_total);
  EXPECT_EQ(c.method, Method::model);
  EXPECT_EQ(c.domain, "package/model");
  EXPECT_EQ(c.scope, Scope::package);
  EXPECT_NE(c.note.find("100 W TDP (as given)"), std::string::npos) << c.note;
  EXPECT_EQ(read_row(*model)[0], 0.0);
  tree.clock->mono += 10'000'000'000;
  set_stat(tree, 120, 920);  // half busy: 0.3 + 0.7 * 0.5 = 0.65 of 100 W
  EXPECT_DOUBLE_EQ(read_row(*model)[0].value(), 650.0);
  tree.clock->mono += 10'000'000'000;
  set_stat(tree, 120, 960);  // idle
  EXPECT_DOUBLE_EQ(read_row(*model)[0].value(), 950.0);
}

TEST(Model, F83_DefaultScalesWithTheQuota) {
  FakeTree tree;
  tree.write("/sys/devices/system/cpu/online", "0-63\n");
  tree.write("/sys/fs/cgroup/cpu.max", "800000 100000\n");
  tree.write("/sys/fs/cgroup/cpu.stat", "usage_usec 1000000\nuser_usec 5\n");
  set_stat(tree, 100, 900);
  const auto model = find(tree);
  EXPECT_NE(model->info().note.find("40 W TDP"), std::string::npos) << model->info().note;
  EXPECT_NE(model->info().note.find("estimated"), std::string::npos);
  EXPECT_EQ(read_row(*model)[0], 0.0);
  tree.clock->mono += 10'000'000'000;
  set_stat(tree, 740, 900);  // the neighbours on the host are busy, this group is not
  EXPECT_DOUBLE_EQ(read_row(*model)[0].value(), 0.3 * 40 * 10);
  tree.clock->mono += 10'000'000'000;
  tree.write("/sys/fs/cgroup/cpu.stat", "usage_usec 81000000\n");  // all 8 CPUs
  EXPECT_DOUBLE_EQ(read_row(*model)[0].value(), 0.3 * 40 * 10 + 400);
}

TEST(Model, NotBesideAMeasurement) {
  FakeTree tree;
  set_stat(tree, 1, 1);
  tree.powercap("intel-rapl:0", "package-0", 0);
  Discovery found;
  discover_rapl(tree.host(), {}, found);
  ASSERT_EQ(found.sensors.size(), 1u);
  discover_model(tree.host(), {}, found);
  EXPECT_EQ(found.sensors.size(), 1u);
}

TEST(Model, DamagedStatIsAnError) {
  FakeTree tree;
  const auto model = find(tree);
  Readings out;
  EXPECT_FALSE(model->read(out)) << "no /proc/stat";
  tree.write("/proc/stat", "cpu all busy\n");
  EXPECT_FALSE(model->read(out));
  set_stat(tree, 10, 10);
  EXPECT_TRUE(model->read(out));
  tree.clock->mono += 1'000'000'000;
  set_stat(tree, 5, 5);  // fell: not a negative energy
  EXPECT_GE(read_row(*model)[0].value(), 0.0);
}

}  // namespace
}  // namespace ergometer::test
