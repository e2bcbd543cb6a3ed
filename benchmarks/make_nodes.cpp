// Writes the runs of many nodes that share no storage, one folder a node: 8 GPUs (or as asked) with power once a
// second, 8 ranks that mark five epochs, clocks of their own. Input of the benchmark of `merge`. The readings are those
// of 16 files, to which all nodes have hard links; each folder is complete and read as such. usage: make_nodes DIR
// NODES [SECONDS] [GPUS]
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/file.hpp"
#include "base/number.hpp"
#include "store/run_json.hpp"
#include "store/run_tables.hpp"
#include "store/zstd_frames.hpp"

namespace {

using namespace ergometer;
namespace fs = std::filesystem;

constexpr int kTemplates = 16;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBegin = 1000 * kSecond;
constexpr std::int64_t kWall = 1'700'000'000 * kSecond;
constexpr int kEpochs = 5;

// One file of power, a frame each half minute.
Result<void> write_template(const fs::path& file, int which, int seconds) {
  FrameCompressor compressor;
  std::string out, text = "t_ns,power_w\n";
  for (int s = -5; s <= seconds + 5; ++s) {
    const double noise = static_cast<double>((static_cast<unsigned>(s + 5) * 2654435761U + which * 977U) % 40000U);
    append_int(text, kBegin + s * kSecond);
    text += fmt::format(",{:.3f}\n", 400 + 200 * std::sin(s * 0.01 + which) + noise / 1000);
    if (s % 30 != 0 && s != seconds + 5) continue;
    const auto frame = compressor.compress(text);
    if (!frame) return tl::unexpected(frame.error());
    out += *frame;
    text.clear();
  }
  return write_file_atomically(file, out);
}

SensorInfo gpu_sensor(int node, int gpu) {
  Channel c;
  c.column = "power_w";
  c.quantity = Quantity::power;
  c.unit = "W";
  c.domain = fmt::format("gpu/{}", gpu);
  c.device = fmt::format("GPU-{:05}-{}", node, gpu);
  c.scope = Scope::gpu;
  c.method = Method::average;
  c.window = std::chrono::seconds(1);
  SensorInfo s;
  s.name = fmt::format("gpu{}", gpu);
  s.interface = "nvml";
  s.interval = std::chrono::seconds(1);
  s.own_time = true;
  s.channels = {c};
  return s;
}

std::string regions_of(int ranks, int first_rank, int seconds) {
  std::string text = kRegionsHeader;
  for (int rank = 0; rank < ranks; ++rank) {
    Region r;
    r.rank = first_rank + rank;
    r.pid = r.tid = 100 + rank;
    r.path = "train";
    r.begin = mono_ns(kBegin + kSecond);
    r.end = mono_ns(kBegin + (seconds - 1) * kSecond);
    append_region_line(text, r);
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      const std::int64_t length = (r.end - r.begin).count() / kEpochs;
      Region e = r;
      e.path = fmt::format("train/epoch[{}]", epoch);
      e.begin = r.begin + Nanos(epoch * length);
      e.end = e.begin + Nanos(length);
      e.attributes = {{"samples", "1000"}};
      append_region_line(text, e);
    }
  }
  return text;
}

Manifest manifest_of(int node, const std::string& name, int seconds) {
  Manifest m;
  m.name = "large";
  m.command = {"train"};
  m.tool_version = "benchmark";
  m.state = "complete";
  m.nodes = {name};
  m.begin = mono_ns(kBegin);
  m.end = mono_ns(kBegin + seconds * kSecond);
  m.exit_code = 0;
  // As a Session takes them; the wall clocks are some milliseconds apart.
  for (int s = 0; s <= seconds; s += 10)
    m.clocks.push_back(
        {mono_ns(kBegin + s * kSecond), wall_ns(kWall + s * kSecond + node % 100 * 100'000), Nanos(2'000'000)});
  return m;
}

Result<void> write_run(const fs::path& templates, const fs::path& run, int node, int seconds, int gpus) {
  const std::string name = fmt::format("node{:05}", node);
  const fs::path folder = run / "nodes" / name;
  std::error_code error;
  fs::create_directories(folder / "samples", error);
  Node n;
  n.name = n.hostname = name;
  n.boot_id = fmt::format("{:08x}-0000-0000-0000-000000000000", node + 1);
  for (int g = 0; g < gpus; ++g) {
    n.sensors.push_back(gpu_sensor(node, g));
    GpuInfo gpu;
    gpu.index = g;
    gpu.uuid = n.sensors.back().channels[0].device;
    gpu.name = "Benchmark GPU";
    n.gpus.push_back(std::move(gpu));
    const fs::path from = templates / fmt::format("{}.csv.zst", (node * gpus + g) % kTemplates);
    const fs::path to = folder / "samples" / fmt::format("gpu{}.csv.zst", g);
    if (::link(from.c_str(), to.c_str()) != 0) return tl::unexpected(errno_error("link", to, errno));
  }
  for (const auto& [file, text] : {std::pair{folder / "node.json", node_to_json(n)},
                                   {folder / "regions.csv", regions_of(gpus, node * gpus, seconds)},
                                   {run / "run.json", manifest_to_json(manifest_of(node, name, seconds))}})
    if (auto written = write_file_atomically(file, text); !written) return written;
  return {};
}

Result<void> write_all(const fs::path& dir, int nodes, int seconds, int gpus) {
  const fs::path templates = dir / "templates";
  std::error_code error;
  fs::create_directories(templates, error);
  if (error) return tl::unexpected(errno_error("create", templates, error.value()));
  for (int i = 0; i < kTemplates; ++i)
    if (auto written = write_template(templates / fmt::format("{}.csv.zst", i), i, seconds); !written) return written;
  for (int node = 0; node < nodes; ++node)
    if (auto written = write_run(templates, dir / fmt::format("run{:05}", node), node, seconds, gpus); !written)
      return written;
  fs::remove_all(templates, error);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, double otherwise) {
    return static_cast<int>(argc > i ? ergometer::parse_double(argv[i]).value_or(0) : otherwise);
  };
  const int nodes = number(2, 0), seconds = number(3, 3600), gpus = number(4, 8);
  if (argc < 3 || nodes < 1 || seconds < 60 || gpus < 1) {
    std::fprintf(stderr, "usage: make_nodes DIR NODES [SECONDS, 60 or more] [GPUS]\n");
    return 2;
  }
  const auto written = write_all(argv[1], nodes, seconds, gpus);
  if (!written) return std::fprintf(stderr, "%s\n", written.error().message.c_str()), 2;
  return 0;
}
