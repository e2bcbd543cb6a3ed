// Writes a run as long as asked (default 24 h) with the sample rates of a real one: per GPU 20 ms power samples and
// 100 ms gauges, 1 s energy; two CPU packages at 100 ms; an hour an epoch. Input of the benchmark of `show`.
// usage: make_day RUN_DIR [HOURS] [GPUS]
#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "base/number.hpp"
#include "store/run_writer.hpp"

namespace {

using namespace ergometer;

Channel power_channel(int gpu, const char* column, Method method) {
  Channel c;
  c.column = column;
  c.quantity = Quantity::power;
  c.unit = "W";
  c.domain = fmt::format("gpu/{}", gpu);
  c.device = fmt::format("GPU-{}", gpu);
  c.scope = Scope::gpu;
  c.method = method;
  return c;
}

Channel energy_channel(const std::string& domain, const char* column, Scope scope) {
  Channel c;
  c.column = column;
  c.quantity = Quantity::energy;
  c.unit = "J";
  c.behaviour = Behaviour::counter;
  c.domain = domain;
  c.device = domain;
  c.scope = scope;
  c.method = Method::counter;
  return c;
}

Channel ratio_channel(int gpu, const char* column) {
  Channel c;
  c.column = column;
  c.quantity = Quantity::ratio;
  c.unit = "1";
  c.domain = fmt::format("gpu/{}", gpu);
  c.scope = Scope::gpu;
  return c;
}

// A plausible milliwatt-resolution power: a slow wave with fast noise.
double power_w(std::int64_t i, int gpu) {
  const auto noise = static_cast<double>((i * 2654435761u + static_cast<unsigned>(gpu) * 97u) % 40000);
  return std::round((400 + 200 * std::sin(static_cast<double>(i) * 1e-4)) * 1000 + noise) / 1000;
}

int write_run(const char* dir, double hours, int gpus) {
  const std::int64_t begin_ns = 1'000'000'000'000;
  const std::int64_t end_ns = begin_ns + static_cast<std::int64_t>(hours * 3.6e12);
  Manifest manifest;
  manifest.name = "day";
  manifest.command = {"train"};
  manifest.nodes = {"node"};
  manifest.begin = mono_ns(begin_ns);
  manifest.end = mono_ns(end_ns);
  manifest.clocks = {{mono_ns(begin_ns), wall_ns(1'700'000'000'000'000'000)}};
  manifest.exit_code = 0;
  auto writer = RunWriter::create(dir, manifest);
  if (!writer) return std::fprintf(stderr, "%s\n", writer.error().message.c_str()), 2;

  Node node;
  node.name = node.hostname = "node";
  for (int g = 0; g < gpus; ++g) {
    GpuInfo gpu;
    gpu.index = g;
    gpu.uuid = fmt::format("GPU-{}", g);
    gpu.name = "Benchmark GPU";
    node.gpus.push_back(gpu);
    const auto domain = fmt::format("gpu/{}", g);
    node.sensors.push_back({fmt::format("gpu{}-samples", g), "nvml", {power_channel(g, "power_w", Method::samples)},
                            std::chrono::milliseconds(500), true, ""});
    node.sensors.push_back({fmt::format("gpu{}", g), "nvml",
                            {power_channel(g, "power_average_w", Method::average), ratio_channel(g, "gpu_active_ratio")},
                            std::chrono::milliseconds(100), false, ""});
    node.sensors.push_back({fmt::format("gpu{}-energy", g), "nvml", {energy_channel(domain, "energy_j", Scope::gpu)},
                            std::chrono::seconds(1), false, ""});
  }
  node.sensors.push_back({"rapl", "rapl-powercap",
                          {energy_channel("package/0", "package_0_energy_j", Scope::package),
                           energy_channel("package/1", "package_1_energy_j", Scope::package)},
                          std::chrono::milliseconds(100), false, ""});
  if (auto written = (*writer)->write_node(node); !written) return 2;

  for (const auto& sensor : node.sensors) {
    auto stream = (*writer)->open_samples("node", sensor);
    if (!stream) return 2;
    const bool samples = sensor.name.ends_with("-samples");
    const std::int64_t step_ns = samples ? 20'000'000 : sensor.interval.count();
    const int gpu = sensor.name.starts_with("gpu") ? sensor.name[3] - '0' : 0;
    std::vector<Row> rows;
    for (std::int64_t i = 0, t = begin_ns; t <= end_ns; ++i, t += step_ns) {
      Row row{mono_ns(t), samples ? Nanos{0} : Nanos{20'000}, {}};
      for (const auto& c : sensor.channels) {
        const double seconds_in = static_cast<double>(t - begin_ns) * 1e-9;
        if (c.quantity == Quantity::power) row.values.emplace_back(power_w(i, gpu));
        else if (c.quantity == Quantity::energy) row.values.emplace_back(std::round(seconds_in * 410e6) * 1e-6);
        else row.values.emplace_back(0.97);
      }
      rows.push_back(std::move(row));
      if (rows.size() < 25) continue;   // half a second of samples a frame, as a Session writes
      (*stream)->append(rows);
      if (auto flushed = (*writer)->flush(); !flushed) return 2;
      rows.clear();
    }
    (*stream)->append(rows);
  }
  if (!(*writer)->flush()) return 2;
  manifest.state = "complete";
  return (*writer)->write_manifest(manifest) ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  const double hours = argc > 2 ? ergometer::parse_double(argv[2]).value_or(0) : 24;
  const double gpus = argc > 3 ? ergometer::parse_double(argv[3]).value_or(0) : 8;
  if (argc < 2 || hours <= 0 || gpus < 1 || gpus > 9) {
    std::fprintf(stderr, "usage: make_day RUN_DIR [HOURS] [GPUS, 1 to 9]\n");
    return 2;
  }
  return write_run(argv[1], hours, static_cast<int>(gpus));
}
