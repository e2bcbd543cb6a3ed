// One number for a whole node: a controller's DCMI reading, RAPL, and four GPUs of which three do nothing, each read
// through its backend and fake; every figure of the account is computed by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/summarise.hpp"
#include "device/fake_tree.hpp"
#include "device/ipmi/ipmi.hpp"
#include "device/profiles.hpp"
#include "device/rapl/rapl.hpp"
#include "fakes/freeipmi/fake_freeipmi.hpp"
#include "nvml/nvml_world.hpp"

namespace ergometer::test {
namespace {

constexpr int kSeconds = 60;
constexpr double kNodeW = 1000, kPackageW = 150, kDramW = 30;

// GPU 0 works at 400 W; of the others, one holds a context.
constexpr const char* kGpus = R"(
gpus = 4
gpu.name = NVIDIA A40
gpu.limit_default = 300
gpu.utilisation = 0
gpu0.power = 400
gpu0.utilisation = 95
gpu0.processes = 4711:1000000
gpu1.power = 70
gpu2.power = 70
gpu3.power = 118
gpu3.processes = 4712:1000000
)";

FakeBmc::Bytes dcmi_answer(int watts, std::uint32_t stamp) {
  FakeBmc::Bytes b{0x02, 0x00, 0xDC};
  const auto put = [&](std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) b.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  for (const int w : {watts, 90, 1200, watts}) put(static_cast<std::uint64_t>(w), 2);
  put(stamp, 4);
  put(86'400'000, 4);
  b.push_back(0x40);
  return b;
}

struct Machine {
  Machine() {
    tree.write("/sys/devices/system/cpu/online", "0\n");
    tree.topology(0, 0, 0, 0);
    tree.powercap("intel-rapl:0", "package-0", 0);
    tree.powercap("intel-rapl:0:0", "dram", 0);
    tree.write("/dev/ipmi0", "");
    freeipmi = *Library::open(FAKE_FREEIPMI);
    bmc = freeipmi->function<FakeBmc*()>("fake_bmc")();
    *bmc = FakeBmc{};
    bmc->answer = [this](std::uint8_t netfn, const FakeBmc::Bytes& rq, int) -> std::optional<FakeBmc::Bytes> {
      if (netfn == 0x06)
        return FakeBmc::Bytes{0x01, 0x00, 0x20, 0x01, 0x03, 0x10, 0x02, 0xBF, 0x7C, 0x2A, 0, 0x34, 0x12};
      if (netfn == 0x2C) return dcmi_answer(static_cast<int>(kNodeW), stamp);
      return FakeBmc::Bytes{rq.at(0), 0xC1};
    };
    world.discover(kGpus);
    found = std::move(world.found);
    Host host = tree.host();
    host.load = [this](const std::string& name) -> Result<std::shared_ptr<Library>> {
      if (name == "libfreeipmi.so.17") return freeipmi;
      return fail(ErrorCode::not_found, name);
    };
    discover_rapl(host, {}, found);
    discover_ipmi(host, {}, found);
    found.node.name = "node";
    found.node.cpu.model = "Intel(R) Xeon(R) Platinum 8480+";
    for (const auto& sensor : found.sensors)
      apply_profiles(built_in_profiles(), found.node, sensor->info().interface, sensor->channels());
  }
  ~Machine() { *bmc = FakeBmc{}; }

  // Each second one reading of every sensor, as a run would record them.
  Summary measure() {
    std::vector<Trace> traces;
    for (const auto& sensor : found.sensors) traces.push_back(Trace::empty(sensor->info()));
    for (int t = 0; t <= kSeconds; ++t) {
      world.advance_to(t);
      tree.clock->mono = kStart + t * 1'000'000'000LL;
      tree.energy("intel-rapl:0", 1'000'000 + static_cast<std::int64_t>(kPackageW * 1e6) * t);
      tree.energy("intel-rapl:0:0", 1'000'000 + static_cast<std::int64_t>(kDramW * 1e6) * t);
      ++stamp;
      for (std::size_t i = 0; i < traces.size(); ++i) {
        Readings out;
        EXPECT_TRUE(found.sensors[i]->read(out)) << found.sensors[i]->info().name;
        for (auto& row : out.rows) {
          if (!traces[i].info.own_time) row.t = mono_ns(tree.clock->mono);
          if (traces[i].t_ns.empty() || to_ns(row.t) > traces[i].t_ns.back()) traces[i].push(row);
        }
      }
    }
    Manifest manifest;
    manifest.state = "complete";
    manifest.begin = mono_ns(kStart);
    manifest.end = mono_ns(kStart + kSeconds * 1'000'000'000LL);
    Summariser s(manifest);
    s.add_node(found.node, {}, {});
    for (const auto& trace : traces) s.add_trace("node", trace);
    return s.finish();
  }

  static constexpr std::int64_t kStart = 1'000'000'000'000;
  std::uint32_t stamp = 1000;
  FakeTree tree;
  NvmlWorld world;
  std::shared_ptr<Library> freeipmi;
  FakeBmc* bmc = nullptr;
  Discovery found;
};

TEST(WholeNode, PartsIdleGpusRestAndIntervalAsComputedByHand) {
  Machine machine;
  const auto s = machine.measure();
  const auto& a = s.nodes.at(0).account.value();
  const auto part = [&](const std::string& domain) {
    for (const auto& p : a.parts)
      if (p.domain == domain) return p;
    ADD_FAILURE() << "no part " << domain;
    return NodePart{};
  };
  // Joules: watts times 60 s. Half-widths: gain tolerances of the profiles (GPU 5 %, package 3 %, memory 20 %, DCMI
  // 5 % and half a watt of rounding); constant powers leave nothing at the edges but a counter's update.
  struct Expected {
    const char* domain;
    PartRole role;
    double watts, tolerance;
  };
  const std::vector<Expected> expected{
      {"gpu/0", PartRole::part, 400, 0.05},     {"gpu/1", PartRole::idle_gpu, 70, 0.05},
      {"gpu/2", PartRole::idle_gpu, 70, 0.05},  {"gpu/3", PartRole::idle_gpu, 118, 0.05},
      {"package/0", PartRole::part, 150, 0.03}, {"dram/0", PartRole::part, 30, 0.2}};
  double parts_j = 0, variance = 0;
  for (const auto& e : expected) {
    const auto p = part(e.domain);
    const double joules = e.watts * kSeconds;
    EXPECT_EQ(p.role, e.role) << e.domain;
    EXPECT_NEAR(p.energy_j.value(), joules, 1e-3 * joules) << e.domain;
    EXPECT_NEAR(p.uncertainty_j.value(), e.tolerance * joules, 0.01 * e.tolerance * joules) << e.domain;
    EXPECT_NEAR(p.share.value(), e.watts / kNodeW, 1e-3) << e.domain;
    parts_j += joules;
    variance += std::pow(e.tolerance * joules, 2);
  }
  // A poll shows what was half a second before on average, so that the last half second of the run lies behind the last
  // reading: a standard deviation of half of its energy.
  const double node_j = kNodeW * kSeconds;
  const double node_width = std::hypot(0.05 * node_j, 0.5 * kSeconds, 1.96 * 0.5 * kNodeW * 0.5);
  EXPECT_TRUE(a.metered);
  EXPECT_NEAR(a.energy_j.value(), node_j, 1e-6 * node_j);
  EXPECT_NEAR(a.uncertainty_j.value(), node_width, 0.01 * node_width);
  EXPECT_NEAR(a.rest_j.value(), 162 * kSeconds, 10);
  EXPECT_NEAR(a.rest_j.value(), node_j - parts_j, 10);
  EXPECT_NEAR(a.rest_uncertainty_j.value(), std::sqrt(variance + node_width * node_width), 30);
  EXPECT_EQ(a.idle_gpus, 3u);
  EXPECT_NEAR(a.idle_gpu_j.value(), 258 * kSeconds, 10);
  EXPECT_NEAR(a.idle_gpu_uncertainty_j.value(), 0.05 * kSeconds * std::sqrt(70.0 * 70 * 2 + 118 * 118), 5);
  EXPECT_NEAR(a.idle_gpu_share.value(), 0.258, 1e-3);
  EXPECT_EQ(part("gpu/1").note, "no CUDA context");
  EXPECT_EQ(part("gpu/3").note, "1 compute process");
  EXPECT_EQ(part("node").role, PartRole::meter);
  EXPECT_NEAR(s.run.energy_j.value(), parts_j, 30) << "the node's meter is not added to its parts";
  EXPECT_NEAR(part("gpu/0").shortcuts.tdp_j.value(), 300 * kSeconds, 1e-6);
}

}  // namespace
}  // namespace ergometer::test
