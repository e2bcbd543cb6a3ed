// Recordings of a PCIe power meter beside the driver's readings (GPU_Power_Benchmark, arXiv:2312.02741).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "analysis/build_run.hpp"
#include "analysis/calibration.hpp"
#include "base/number.hpp"
#include "device/profiles.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::test {
namespace {

using Columns = std::vector<std::vector<double>>;

Columns columns_of(const std::string& command) {
  Columns out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return out;
  char line[256];
  while (std::fgets(line, sizeof line, pipe)) {
    std::string text(line);
    std::vector<double> row;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find_first_of(",\n", begin), text.size());
      if (const auto value = parse_double(text.substr(begin, end - begin))) row.push_back(*value);
      begin = end + 1;
    }
    if (row.size() < 2) continue;  // the head
    out.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) out[i].push_back(row[i]);
  }
  ::pclose(pipe);
  return out;
}

class Meter {
 public:
  explicit Meter(const Columns& c) : t_(c.at(0)), sum_(c.at(0).size()) {
    for (std::size_t i = 1; i < t_.size(); ++i)
      sum_[i] = sum_[i - 1] + 0.5 * (c[1][i] + c[1][i - 1]) * (t_[i] - t_[i - 1]);
  }
  [[nodiscard]] double energy(double a, double b) const { return at(b) - at(a); }
  [[nodiscard]] double end() const { return t_.back(); }

 private:
  [[nodiscard]] double at(double t) const {
    const auto i = std::lower_bound(t_.begin(), t_.end(), t) - t_.begin();
    return sum_[std::min(static_cast<std::size_t>(i), sum_.size() - 1)];
  }
  std::vector<double> t_, sum_;
};

struct Recorded {
  Meter meter;
  Trace trace;
  Columns readings;  // of the meter
};

// The driver's readings, polled each 14 ms; they change each 100.
std::optional<Recorded> read_recorded(const std::string& name, const std::string& gpu, std::size_t column,
                                      const std::string& channel_name, Method method) {
  const auto dir = shared_dir() / "traces/oxford" / name;
  if (shared_dir().empty() || !std::filesystem::exists(dir / "smi.csv")) return std::nullopt;
  const auto meter = columns_of("gzip -dc '" + (dir / "meter.csv.gz").string() + "'");
  const auto smi = columns_of("cat '" + (dir / "smi.csv").string() + "'");
  if (meter.size() < 2 || smi.size() <= column) return std::nullopt;
  Node node;
  node.gpus.resize(1);
  node.gpus[0].name = gpu;
  std::vector<Channel> channels{power("gpu/0", Scope::gpu, method)};
  channels[0].column = channel_name;
  apply_profiles(built_in_profiles(), node, "nvml", channels);
  SensorInfo info;
  info.name = "gpu0";
  info.interval = std::chrono::milliseconds(14);
  info.channels = channels;
  Trace trace = Trace::empty(info);
  for (std::size_t i = 0; i < smi[0].size(); ++i) trace.push(Row{at(smi[0][i]), Nanos{0}, {smi[column][i]}});
  return Recorded{Meter(meter), trace, meter};
}

DomainEnergy between(const Trace& trace, double a, double b) {
  return domain(summarise(run_of(a, b), {trace}), "gpu/0");
}

// Calibrated against the meter over one stretch, tried on another.
void expect_fit_within(const Recorded& r, double begin, double end, double other_begin, double other_end,
                       double share) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < r.readings[0].size(); ++i)
    if (r.readings[0][i] >= begin && r.readings[0][i] <= end)
      rows.push_back({at(r.readings[0][i]), Nanos{0}, {r.readings[1][i]}});
  const auto found = calibrate_against_meter(r.trace, 0, reference_of(rows), 0.5);
  ASSERT_TRUE(found.later_s && found.channel.gain);
  Trace fitted = r.trace;
  auto& channel = fitted.info.channels[0];
  channel.gain = found.channel.gain->value;
  channel.offset_w = found.channel.offset_w->value;
  channel.gain_tolerance = found.channel.gain->uncertainty / found.channel.gain->value;
  const double truth = r.meter.energy(other_begin, other_end);
  const double read = *between(fitted, other_begin, other_end).energy_j;
  EXPECT_NEAR(read, truth, share * truth);
  std::printf(
      "calibrated on [%.1f, %.1f]: gain %.4f +- %.4f, offset %.2f +- %.2f W, later by %.3f s, fit %.1f %%: %+.2f %% on "
      "the other half\n",
      begin, end, found.channel.gain->value, found.channel.gain->uncertainty, found.channel.offset_w->value,
      found.channel.offset_w->uncertainty, found.later_s->value, 100 * found.channel.explained,
      100 * (read / truth - 1));
}

TEST(Oxford, Rtx3090StepWithinTheStatedInterval) {
  const auto r = read_recorded("rtx3090_step", "NVIDIA GeForce RTX 3090", 2, "power_instant_w", Method::integral);
  if (!r) GTEST_SKIP() << "the recording traces/oxford is not here";
  const double end = r->meter.end() - 0.2, truth = r->meter.energy(0.2, end);
  const auto read = between(r->trace, 0.2, end);
  EXPECT_NEAR(*read.energy_j, truth, *read.uncertainty_j);
  std::printf("meter %.1f J, read %.1f J +- %.1f\n", truth, *read.energy_j, *read.uncertainty_j);
  // The second half has no load to fit a gain on.
  expect_fit_within(*r, 0.2, 7, 7, end, 0.02);
}

TEST(Oxford, A100SquareWithinTheStatedInterval) {
  const auto r = read_recorded("a100_square", "NVIDIA A100-PCIE-40GB", 2, "power_instant_w", Method::integral);
  if (!r) GTEST_SKIP() << "the recording traces/oxford is not here";
  const double end = r->meter.end() - 0.2, truth = r->meter.energy(0.2, end);
  const auto read = between(r->trace, 0.2, end);
  EXPECT_NEAR(*read.energy_j, truth, *read.uncertainty_j);
  std::printf("meter %.1f J, read %.1f J +- %.1f\n", truth, *read.energy_j, *read.uncertainty_j);
  const double half = (0.2 + end) / 2;
  expect_fit_within(*r, 0.2, half, half, end, 0.02);
  expect_fit_within(*r, half, end, 0.2, half, 0.02);
}

}  // namespace
}  // namespace ergometer::test
