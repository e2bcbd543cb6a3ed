// run.json and node.json: all fields there and back, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "store/run_json.hpp"

namespace ergometer {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RunJson, ManifestThereAndBack) {
  Manifest m;
  m.name = "n\"ame";
  m.command = {"sh", "-c", "exit 7"};
  m.directory = "/tmp";
  m.environment = {{"CUDA_VISIBLE_DEVICES", "0,1"}};
  m.tool_version = "0.1.0";
  m.state = "complete";
  m.clocks = {{mono_ns(1), wall_ns(1700000000000000000)}, {mono_ns(2), wall_ns(1700000000000000001)}};
  m.idle_before = Interval{mono_ns(3), mono_ns(4)};
  m.begin = mono_ns(5);
  m.end = mono_ns(9000000000000000001);
  m.exit_code = 137;
  m.signal = 9;
  m.nodes = {"a", "b"};
  m.warnings = {{"code", "message", "remedy"}};
  m.overhead = Overhead{0.25, 1e7};
  const auto back = manifest_from_json(manifest_to_json(m), "FILE");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->name, m.name);
  EXPECT_EQ(back->command, m.command);
  EXPECT_EQ(back->directory, m.directory);
  EXPECT_EQ(back->environment, m.environment);
  EXPECT_EQ(back->tool_version, m.tool_version);
  EXPECT_EQ(back->state, m.state);
  ASSERT_EQ(back->clocks.size(), 2U);
  EXPECT_EQ(back->clocks[1].mono, m.clocks[1].mono);
  EXPECT_EQ(back->clocks[1].wall, m.clocks[1].wall);
  ASSERT_TRUE(back->idle_before);
  EXPECT_EQ(back->idle_before->begin, mono_ns(3));
  EXPECT_EQ(back->idle_before->end, mono_ns(4));
  EXPECT_FALSE(back->idle_after);
  EXPECT_EQ(back->begin, m.begin);
  EXPECT_EQ(back->end, m.end);
  EXPECT_EQ(back->exit_code, 137);
  EXPECT_EQ(back->signal, 9);
  EXPECT_EQ(back->nodes, m.nodes);
  EXPECT_EQ(back->warnings, m.warnings);
  ASSERT_TRUE(back->overhead);
  EXPECT_EQ(back->overhead->cpu_s, 0.25);
  EXPECT_EQ(back->overhead->max_rss_bytes, 1e7);
  // The same text again: nothing is lost that the text holds.
  EXPECT_EQ(manifest_to_json(*back), manifest_to_json(m));
}

TEST(RunJson, PartThereAndBack) {
  Manifest m;
  m.nodes = {"n1", "n2"};
  m.clocks = {{mono_ns(1), wall_ns(2), Nanos(1500000)}, {mono_ns(3), wall_ns(4)}};
  m.parts = Parts{"slurm-7.0", "slurm", 2, 4, "n1"};
  m.place = Place{"n2-0badcafe", {"n3"}, "host", "0badcafe-1", "4026531834", "/roots/2", "slurm",
                  "slurm-7.0",   "7",    "0",    "alice",      "docker-1",   "/job_7",   4};
  m.ranks = {{0, 11, "n1", 0, {}, mono_ns(5), mono_ns(6)}, {3, 12, "n3", {}, 9, mono_ns(7), {}}, {}};
  m.clock = ClockLink{"n1",
                      ClockLink::Method::exchange,
                      {{mono_ns(8), Nanos(-3600000000000), Nanos(20000)}, {mono_ns(9), Nanos(10), Nanos(0)}}};
  const auto back = part_from_json(part_to_json(m), "FILE");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->clocks.at(0).error, Nanos(1500000));
  EXPECT_EQ(back->clocks.at(1).error, std::nullopt);
  ASSERT_TRUE(back->parts && back->place && back->clock);
  EXPECT_EQ(back->parts->run_key, "slurm-7.0");
  EXPECT_EQ(back->parts->nodes, 2);
  EXPECT_EQ(back->parts->ranks, 4);
  EXPECT_EQ(back->parts->clock_reference, "n1");
  EXPECT_TRUE(back->place->same_machine(*m.place));
  EXPECT_EQ(back->place->aliases, m.place->aliases);
  EXPECT_EQ(back->place->job_user, "alice");
  EXPECT_EQ(back->place->world_size, 4);
  ASSERT_EQ(back->ranks.size(), 3U);
  EXPECT_EQ(back->ranks[1].node, "n3");
  EXPECT_EQ(back->ranks[1].exit_code, std::nullopt);
  EXPECT_EQ(back->ranks[1].signal, 9);
  EXPECT_EQ(back->ranks[1].begin, mono_ns(7));
  EXPECT_EQ(back->ranks[2].rank, -1);
  EXPECT_EQ(back->clock->method, ClockLink::Method::exchange);
  ASSERT_EQ(back->clock->offsets.size(), 2U);
  EXPECT_EQ(back->clock->offsets[0].offset, Nanos(-3600000000000));
  EXPECT_EQ(back->clock->offsets[0].error, Nanos(20000));
  EXPECT_EQ(part_to_json(*back), part_to_json(m));
  // Neither file is taken for the other, and a run on one node has none of these keys.
  EXPECT_FALSE(manifest_from_json(part_to_json(m), "FILE"));
  EXPECT_FALSE(part_from_json(manifest_to_json(m), "FILE"));
  const auto alone = nlohmann::json::parse(manifest_to_json(Manifest{}));
  for (const char* key : {"parts", "place", "ranks", "clock"}) EXPECT_FALSE(alone.contains(key)) << key;
}

TEST(RunJson, AClockOfAnUnknownMethodIsRefused) {
  const auto part = part_from_json(R"({"schema":"ergometer.part/1","clock":{"method":"guess"}})", "FILE");
  ASSERT_FALSE(part);
  EXPECT_THAT(part.error().message, HasSubstr("FILE: clock.method must be \"same\", \"exchange\" or \"wall\""));
}

TEST(Place, AMachineIsToldByBootTimeNamespaceAndHostRoot) {
  Place a;
  EXPECT_FALSE(a.same_machine(a));  // nothing is known of it
  a.boot_id = "x";
  Place b = a;
  b.node = "other";
  EXPECT_TRUE(a.same_machine(b));
  b.host_root = "/r";
  EXPECT_FALSE(a.same_machine(b));
  b = a;
  b.time_namespace = "1";
  EXPECT_FALSE(a.same_machine(b));
}

Node full_node() {
  Node n;
  n.name = "node1";
  n.hostname = "node1.cluster";
  n.boot_id = "b";
  n.kernel = "6.1";
  n.cpu = {"EPYC", 2, 64, 128, "0-127", 3.5};
  n.memory_bytes = 1099511627776.0;
  n.memory_limit_bytes = 17179869184.0;
  GpuInfo gpu;
  gpu.index = 1;
  gpu.uuid = "GPU-1";
  gpu.name = "H200";
  gpu.pci_bus_id = "0000:18:00.0";
  gpu.memory_bytes = 150e9;
  gpu.power_limit_w = 700;
  gpu.default_power_limit_w = 700.5;
  gpu.min_power_limit_w = 200;
  gpu.max_power_limit_w = 701;
  gpu.visible = false;
  gpu.ordinal = 3;
  gpu.mig = true;
  gpu.state = "lost";
  gpu.note = "x";
  gpu.slices = {{"MIG-a", 1, 2, 14.0, {}, true}};
  n.gpus = {GpuInfo{}, gpu};
  n.components = {{"nic", "eth0", "PCI 0x15b3:0x1017"}, {"fan", "nct6775 fan2", ""}};
  n.versions = {{"nvidia-driver", "580.159.04"}};
  Channel c;
  c.column = "energy_j";
  c.quantity = Quantity::energy;
  c.unit = "J";
  c.behaviour = Behaviour::counter;
  c.domain = "package/0";
  c.device = "package-0";
  c.scope = Scope::package;
  c.method = Method::counter;
  c.measured = false;
  c.in_total = false;
  c.range = 262143.32885;
  c.period = Nanos(1000000);
  c.window = Nanos(25000000);
  c.resolution = 1e-6;
  c.max_power_w = 400;
  c.delay = Nanos(20000000);
  c.sampled_share = 0.25;
  c.gain = 1.02;
  c.offset_w = -3;
  c.gain_tolerance = 0.05;
  c.offset_tolerance_w = 5;
  c.profile = "a100: SOURCE";
  c.note = "duplicate";
  SensorInfo s;
  s.name = "package0";
  s.interface = "rapl-powercap";
  s.interval = Nanos(100000000);
  s.own_time = true;
  s.note = "note";
  s.channels = {c, Channel{}};
  n.sensors = {s};
  n.absences = {{"rapl", "dram", "permission denied", "sudo chmod a+r"}};
  return n;
}

TEST(RunJson, NodeThereAndBack) {
  const Node n = full_node();
  const auto back = node_from_json(node_to_json(n), "FILE");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(node_to_json(*back), node_to_json(n));
  const Channel& c = back->sensors.at(0).channels.at(0);
  EXPECT_EQ(c.scope, Scope::package);
  EXPECT_EQ(c.method, Method::counter);
  EXPECT_EQ(c.range, 262143.32885);
  EXPECT_EQ(c.window, Nanos(25000000));
  EXPECT_FALSE(c.in_total);
  EXPECT_EQ(c.delay, Nanos(20000000));
  EXPECT_EQ(c.sampled_share, 0.25);
  EXPECT_EQ(c.gain, 1.02);
  EXPECT_EQ(c.offset_w, -3);
  EXPECT_EQ(c.gain_tolerance, 0.05);
  EXPECT_EQ(c.offset_tolerance_w, 5);
  EXPECT_EQ(c.profile, "a100: SOURCE");
  EXPECT_EQ(back->sensors[0].channels[1].method, std::nullopt);
  EXPECT_EQ(back->gpus.at(1).max_power_limit_w, 701);
  EXPECT_EQ(back->gpus[1].ordinal, 3);
  ASSERT_EQ(back->gpus[1].slices.size(), 1u);
  EXPECT_EQ(back->gpus[1].slices[0].uuid, "MIG-a");
  EXPECT_EQ(back->gpus[1].slices[0].gpu_instance, 1);
  EXPECT_EQ(back->gpus[1].slices[0].compute_instance, 2);
  EXPECT_EQ(back->gpus[1].slices[0].multiprocessors, 14.0);
  EXPECT_EQ(back->gpus[1].slices[0].memory_bytes, std::nullopt);
  EXPECT_TRUE(back->gpus[1].slices[0].visible);
  EXPECT_EQ(back->gpus[0].ordinal, std::nullopt);
  ASSERT_EQ(back->components.size(), 2u);
  EXPECT_EQ(back->components[0].model, "PCI 0x15b3:0x1017");
  EXPECT_EQ(back->cpu.quota_cpus, 3.5);
  EXPECT_EQ(back->absences.at(0).remedy, "sudo chmod a+r");
}

TEST(RunJson, F103_WhatIsNotANumberIsNull) {
  Manifest m;
  m.overhead = Overhead{0.0 / 0.0, std::numeric_limits<double>::infinity()};
  Node n;
  n.gpus = {GpuInfo{}};
  n.cpu.quota_cpus = -std::numeric_limits<double>::infinity();
  const auto run = nlohmann::json::parse(manifest_to_json(m));
  const auto node = nlohmann::json::parse(node_to_json(n));
  EXPECT_TRUE(run["overhead"]["cpu_s"].is_null());
  EXPECT_TRUE(run["overhead"]["max_rss_bytes"].is_null());
  EXPECT_TRUE(node["gpus"][0]["power_limit_w"].is_null());
  EXPECT_TRUE(node["cpu"]["quota_cpus"].is_null());
  EXPECT_TRUE(run["exit_code"].is_null());
}

TEST(RunJson, BytesThatAreNoTextAreReplaced) {
  Manifest m;
  m.command = {"caf\xE9", "\xC3\xA9"};
  const auto run = nlohmann::json::parse(manifest_to_json(m));
  EXPECT_EQ(run["command"][0], "caf\xEF\xBF\xBD");
  EXPECT_EQ(run["command"][1], "\xC3\xA9");
}

TEST(RunJson, UnknownKeysAreIgnoredAndMissingOnesUnset) {
  const auto m = manifest_from_json(R"({"schema":"ergometer.run/1","future":[1,{"a":null}],"begin_ns":null})", "FILE");
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->begin, std::nullopt);
  EXPECT_THAT(m->nodes, IsEmpty());
  EXPECT_EQ(m->state, "complete");
}

TEST(RunJson, RefusalsNameTheFileAndWhatIsExpected) {
  const auto message = [](std::string_view text) {
    const auto m = manifest_from_json(text, "FILE");
    return m ? std::string("accepted") : m.error().message + " | " + m.error().hint;
  };
  for (const char* text : {"{\"schema\":\"ergometer.run/1\"", "nonsense", "", "[NaN]",
                           "{\"schema\":\"ergometer.run/1\",\"end_ns\":1e999}"})
    EXPECT_THAT(message(text), HasSubstr("FILE is damaged or cut")) << text;
  EXPECT_THAT(message("[]"), HasSubstr("FILE holds no JSON object"));
  EXPECT_THAT(message("{}"),
              HasSubstr("FILE has no schema | expected is an object with \"schema\": \"ergometer.run/1\""));
  EXPECT_THAT(message(R"({"schema":"other/1"})"), HasSubstr("FILE is something else: its schema is \"other/1\""));
  EXPECT_THAT(message(R"({"schema":"ergometer.run/2"})"),
              HasSubstr("FILE is of the version ergometer.run/2; this program reads ergometer.run/1"));
  const std::string head = R"({"schema":"ergometer.run/1",)";
  EXPECT_THAT(message(head + R"("begin_ns":1.5})"), HasSubstr("FILE: begin_ns must be a whole number"));
  EXPECT_THAT(message(head + R"("begin_ns":18446744073709551615})"), HasSubstr("begin_ns must be a whole number"));
  EXPECT_THAT(message(head + R"("exit_code":4294967296})"), HasSubstr("exit_code must be a whole number"));
  EXPECT_THAT(message(head + R"("command":"sh"})"), HasSubstr("command must be an array of strings"));
  EXPECT_THAT(message(head + R"("clocks":[{"mono_ns":1,"wall_ns":2},{"mono_ns":"x"}]})"),
              HasSubstr("clocks[1].mono_ns must be a whole number"));
  const auto node =
      node_from_json(R"({"schema":"ergometer.node/1","sensors":[{"channels":[{"scope":"moon"}]}]})", "FILE");
  ASSERT_FALSE(node);
  EXPECT_THAT(node.error().message, HasSubstr("sensors[0].channels[0].scope must be one of the words"));
}

}  // namespace
}  // namespace ergometer
