#include "device/slurm/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device/node_meter.hpp"
#include "device/slurm/output.hpp"
#include "device/tool.hpp"

namespace ergometer {
namespace {

using namespace slurm;
using namespace std::chrono_literals;

constexpr Nanos kLookLimit = 1500ms;  // of a tool, in discovery
constexpr Nanos kReadLimit = 10s;     // of a tool, while measuring
// A question costs slurmctld a message, so no node asks more often.
constexpr Nanos kShortestInterval = 10s;

// What is asked on each read.
struct Questions {
  Environment environment;
  std::vector<std::string> node, step;  // command lines; empty: not asked

  Result<NodeEnergy> ask_node(Nanos limit) const {
    const auto text = run_tool(node, environment, limit);
    if (!text) return tl::unexpected(text.error());
    return parse_node(*text);
  }
  Result<std::optional<double>> ask_step(Nanos limit) const {
    const auto text = run_tool(step, environment, limit);
    if (!text) return tl::unexpected(text.error());
    return parse_step(*text);
  }
};

class SlurmSensor final : public Sensor {
 public:
  SlurmSensor(SensorInfo info, std::shared_ptr<Clock> clock, Questions questions)
      : Sensor(std::move(info)), clock_(std::move(clock)), questions_(std::move(questions)) {}

  Result<void> read(Readings& out) override {
    NodeEnergy node;
    std::optional<double> step;
    std::optional<Error> error;
    if (!questions_.node.empty()) {
      const auto answer = questions_.ask_node(kReadLimit);
      if (answer)
        node = *answer;
      else
        error = answer.error();
    }
    if (!questions_.step.empty()) {
      const auto answer = questions_.ask_step(kReadLimit);
      if (answer)
        step = *answer;
      else
        error = answer.error();
    }
    std::vector<std::optional<double>> row;
    for (const auto& channel : info_.channels)
      row.push_back(channel.quantity == Quantity::power ? node.power_w
                    : channel.scope == Scope::node      ? node.energy_j
                                                        : step);
    if (std::ranges::none_of(row, [](const auto& v) { return v.has_value(); }))
      return tl::unexpected(error.value_or(Error{ErrorCode::unavailable, "Slurm reports no power and no energy", ""}));
    if (node.power_w) watch_.see(*node.power_w, clock_->now(), out);
    out.add(std::move(row));
    return {};
  }

 private:
  std::shared_ptr<Clock> clock_;
  Questions questions_;
  StandstillWatch watch_{"Slurm's power of this node"};
};

Channel slurm_channel(std::string column, const Config& config, Scope scope) {
  auto c = node_power_channel(std::move(column), "Slurm, acct_gather_energy/" + config.energy_type,
                              "reported by Slurm: shown apart, never added");
  c.domain = scope == Scope::node ? "node/slurm" : "job/slurm";
  c.scope = scope;
  c.in_total = false;
  c.resolution = 1;
  if (config.node_period_s) c.period = from_seconds(*config.node_period_s);
  if (config.energy_type == "rapl") c.note += "; RAPL of the sockets only, known to be too high on some sites";
  if (c.column.ends_with("_j")) as_energy_counter(c);
  return c;
}

}  // namespace

void discover_slurm(const Host& host, const DiscoverOptions& options, Discovery& out) {
  const bool asked = std::ranges::find(options.only, "slurm") != options.only.end();
  const auto job = value_of(options.environment, "SLURM_JOB_ID");
  if (job.empty() && !asked) return;
  const auto absent = [&](const Error& error) { meter_absent(out, "slurm", "energy by Slurm", error, asked); };
  Questions questions{options.environment, {}, {}};
  const auto text = run_tool({"scontrol", "show", "config"}, options.environment, kLookLimit);
  if (!text) return absent(text.error());
  const auto config = parse_config(*text);
  if (config.energy_type.empty() || config.energy_type == "none")
    return absent({ErrorCode::unsupported, "Slurm gathers no energy here",
                   "slurm.conf: AcctGatherEnergyType=acct_gather_energy/ipmi (or xcc, rapl, gpu, pm_counters)"});

  SensorInfo info;
  info.name = info.interface = "slurm";
  info.interval = std::max(kShortestInterval, from_seconds(std::min(config.node_period_s.value_or(30), 3600.0)));
  auto node = value_of(options.environment, "SLURMD_NODENAME");
  if (node.empty()) node = value_of(options.environment, "HOSTNAME");
  if (!node.empty()) {
    questions.node = {"scontrol", "show", "node", node, "-o"};
    const auto answer = questions.ask_node(kLookLimit);
    if (answer && answer->power_w) info.channels.push_back(slurm_channel("slurm_node_power_w", config, Scope::node));
    if (answer && answer->energy_j) info.channels.push_back(slurm_channel("slurm_node_energy_j", config, Scope::node));
    if (info.channels.empty()) questions.node.clear();
  }
  if (!job.empty()) {
    const auto step = value_of(options.environment, "SLURM_STEP_ID");
    // Steps of one node overlap, so only the one that we are in is asked. It has no energy yet when it begins.
    questions.step = {
        "sstat", "-n", "-P", "-j", job + "." + (step.empty() ? "batch" : step), "-o", "ConsumedEnergyRaw"};
    if (questions.ask_step(kLookLimit))
      info.channels.push_back(slurm_channel("slurm_step_energy_j", config, Scope::system));
    else
      questions.step.clear();
  }
  if (info.channels.empty())
    return absent({ErrorCode::unavailable, "Slurm tells neither power nor energy of this node",
                   config.node_period_s ? "" : "slurm.conf: AcctGatherNodeFreq=30 lets nodes report"});
  out.sensors.push_back(std::make_shared<SlurmSensor>(std::move(info), host.clock, std::move(questions)));
}

}  // namespace ergometer
