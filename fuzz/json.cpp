// run.json and node.json. What is accepted must be accepted again when written.
#include "store/run_json.hpp"
#include "target.hpp"

using namespace ergometer;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz_text(data, size);
  if (const auto manifest = manifest_from_json(text, "input")) {
    const std::string once = manifest_to_json(*manifest);
    const auto back = manifest_from_json(once, "input");
    fuzz_check(back && manifest_to_json(*back) == once);
  }
  if (const auto node = node_from_json(text, "input")) {
    const std::string once = node_to_json(*node);
    const auto back = node_from_json(once, "input");
    fuzz_check(back && node_to_json(*back) == once);
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  Manifest manifest;
  manifest.command = {"sh", "-c", "exit 7"};
  manifest.environment = {{"A", "b"}};
  manifest.clocks = {{mono_ns(1), wall_ns(2)}};
  manifest.idle_after = Interval{mono_ns(1), mono_ns(2)};
  manifest.overhead = Overhead{0.5, 1e6};
  manifest.warnings = {{"a", "b", "c"}};
  Node node;
  node.name = "n";
  node.gpus.resize(1);
  node.gpus[0].power_limit_w = 212.5;
  node.sensors.resize(1);
  node.sensors[0].channels.resize(2);
  node.sensors[0].channels[0].method = Method::samples;
  node.absences.resize(1);
  return {manifest_to_json(manifest), node_to_json(node), R"({"schema":"ergometer.run/1"})",
          R"({"schema":"ergometer.node/1","gpus":null})"};
}
