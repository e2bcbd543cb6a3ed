#include "study/validity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace ergometer {
namespace {

// Slow-downs that no limit of the study asks for. A power cap throttles on purpose.
constexpr std::array<std::pair<const char*, const char*>, 6> kThrottles{{{"throttle_thermal_s", "heat"},
                                                                         {"throttle_sw_thermal_s", "heat (driver)"},
                                                                         {"throttle_hw_thermal_s", "heat (hardware)"},
                                                                         {"throttle_power_brake_s", "the supply's power brake"},
                                                                         {"throttle_board_limit_s", "the board's limit"},
                                                                         {"throttle_reliability_s", "the voltage's limit"}}};

class Judge {
 public:
  Judge(const ValidityRules& rules, Judgement& out) : rules_(rules), out_(out) {}

  void controls(const ControlSightings& sightings) {
    std::set<std::string> told;
    for (const auto* all : {&sightings.before, &sightings.under_load})
      for (const auto& applied : *all) {
        if (applied.in_effect || !applied.effective || !told.insert(applied.name).second) continue;
        const bool clock = std::holds_alternative<Hertz>(applied.requested);
        invalid(fmt::format("{}: {} asked, {} {}", applied.name, to_text(applied.requested), to_text(*applied.effective),
                            clock ? "seen" : "enforced"));
      }
    for (const auto& text : sightings.changed) invalid(text);
  }

  void node(const MeasuredRun& run) {
    const double length = run.summary.run.duration_s.value_or(0);
    for (const auto& [key, channel] : run.readings) {
      if (channel.count == 0 || !is_used_gpu(run, key)) continue;
      throttle(key, channel, length);
      if (key.ends_with("/foreign_process_count") && channel.highest > 0 && !rules_.foreign_processes)
        invalid(fmt::format("{}: up to {:g} {} of others used it", device(key), channel.highest,
                            channel.highest == 1 ? "process" : "processes"));
      if (key.ends_with("/temperature_celsius"))
        out_.start_celsius = std::max(out_.start_celsius.value_or(channel.first), channel.first);
    }
    coverage(run);
  }

  void temperature(const std::optional<double>& block) {
    if (!out_.start_celsius) return;
    const double start = *out_.start_celsius;
    if (rules_.lowest_start_celsius && (start < *rules_.lowest_start_celsius || start > *rules_.highest_start_celsius))
      invalid(fmt::format("it began at {:g} degrees Celsius, outside {:g} to {:g}", start, *rules_.lowest_start_celsius,
                          *rules_.highest_start_celsius));
    if (rules_.start_spread_celsius && block && std::abs(start - *block) > *rules_.start_spread_celsius)
      invalid(fmt::format("it began at {:g} degrees Celsius, the block at {:g}: more than {:g} apart", start, *block,
                          *rules_.start_spread_celsius));
  }

 private:
  void invalid(std::string reason) {
    out_.verdict = Verdict::invalid;
    out_.reasons.push_back(std::move(reason));
  }

  static std::string device(const std::string& key) { return key.substr(0, key.rfind('/')); }

  void throttle(const std::string& key, const ChannelReadings& channel, double length) {
    for (const auto& [column, cause] : kThrottles) {
      if (!key.ends_with(std::string("/") + column)) continue;
      const double slowed = channel.growth();
      if (slowed <= 0 || length <= 0) return;
      const auto text = fmt::format("{} was slowed down by {} for {:.3g} s ({:.3g} % of the run)", device(key), cause,
                                    slowed, 100 * slowed / length);
      if (slowed > rules_.throttle * length)
        invalid(text);
      else
        out_.reasons.push_back(text);
    }
  }

  void coverage(const MeasuredRun& run) {
    bool any = false;
    for (const auto& node : run.summary.nodes)
      for (const auto& domain : node.domains) {
        if (!domain.in_total || !domain.measured) continue;
        any = true;
        if (!domain.energy_j) {
          invalid(fmt::format("{} has no energy{}", domain.domain, domain.note.empty() ? "" : ": " + domain.note));
          continue;
        }
        if (domain.coverage < rules_.coverage)
          invalid(fmt::format("readings of {} cover {:.3g} % of the run", domain.domain, 100 * domain.coverage));
        std::size_t most = 0;
        for (const auto& [key, channel] : run.readings)
          if (key.starts_with(domain.domain + "/") && channel.method) most = std::max(most, channel.count);
        if (most < static_cast<std::size_t>(rules_.readings))
          invalid(fmt::format("{} has {} readings, fewer than {}", domain.domain, most, rules_.readings));
      }
    if (!any) out_.reasons.push_back("no energy was measured");
  }

  const ValidityRules& rules_;
  Judgement& out_;
};

}  // namespace

Judgement judge(const ValidityRules& rules, const std::vector<MeasuredRun>& nodes, const ControlSightings& controls,
                const std::optional<double>& block_celsius) {
  Judgement out;
  Judge judge(rules, out);
  judge.controls(controls);
  for (const auto& node : nodes) judge.node(node);
  judge.temperature(block_celsius);
  return out;
}

}  // namespace ergometer
