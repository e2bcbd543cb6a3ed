#include "analysis/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ergometer {
namespace {

// A change of idle power that is told: beyond its uncertainty by more than both of these.
constexpr double kDriftShare = 0.05, kDriftWatts = 2;

double phase_seconds(const Rows& rows, std::uint32_t row) {
  double sum = 0;
  for (const auto& piece : rows.pieces)
    if (piece.row == row) sum += seconds(Nanos(piece.end - piece.begin));
  return sum;
}

// The domain's energy in an idle phase, for one second of it; nothing if it was not measured there.
std::optional<DomainEnergy> per_second(const Domain& domain, std::uint32_t row, double length_s) {
  auto e = energy_of(domain, row, length_s);
  if (!e.energy_j || !e.measured || e.coverage <= 0) return std::nullopt;
  const double covered_s = e.coverage * length_s;
  e.energy_j = *e.energy_j / covered_s;
  for (double* part : {&e.parts.random_j, &e.parts.hidden_j, &e.parts.gain_j, &e.parts.offset_j}) *part /= covered_s;
  e.in_total = true;  // a GPU that the command cannot use has an idle power as well
  return e;
}

double own_width(const DomainEnergy& e) { return std::hypot(e.parts.random_j, e.parts.hidden_j); }

std::string state_in(const Node& node, const std::string& domain, std::span<const Gauge> gauges, std::uint32_t row) {
  return context_of(node, domain, RunMeans(gauges)(domain + "/process_count", row));
}

}  // namespace

std::string context_of(const Node& node, const std::string& domain, std::optional<double> processes) {
  if (!processes || *processes < 0) return {};
  const bool nvidia =
      std::ranges::any_of(node.gpus, [&](const GpuInfo& g) { return fmt::format("gpu/{}", g.index) == domain; });
  if (!nvidia) return {};
  constexpr double kNone = 0.01;
  if (*processes < kNone) return "no CUDA context";
  const double whole = std::round(*processes);
  if (whole < 1 || std::abs(*processes - whole) > kNone)
    return fmt::format("{:.1f} compute processes on average", *processes);
  return fmt::format("{:.0f} compute process{}", whole, whole > 1 ? "es" : "");
}

Baselines measure_baselines(const Node& node, const std::vector<Domain>& domains, const Rows& rows,
                            std::span<const Gauge> gauges) {
  const double before_s = phase_seconds(rows, kIdleBeforeRow), after_s = phase_seconds(rows, kIdleAfterRow);
  Baselines out;
  for (const auto& domain : domains) {
    const auto before = per_second(domain, kIdleBeforeRow, before_s);
    const auto after = per_second(domain, kIdleAfterRow, after_s);
    auto& idle = out.idle.emplace_back();
    if (!before && !after) continue;
    Baseline told;
    told.domain = domain.name;
    if (before) {
      told.before_w = before->energy_j;
      told.before_uncertainty_w = own_width(*before);
      told.before = state_in(node, domain.name, gauges, kIdleBeforeRow);
    }
    if (after) {
      told.after_w = after->energy_j;
      told.after_uncertainty_w = own_width(*after);
      told.after = state_in(node, domain.name, gauges, kIdleAfterRow);
    }
    if (before && after) {
      const auto drift = difference({*after}, 1, {*before}, 1);
      told.drift_w = drift->value;
      told.drift_uncertainty_w = drift->uncertainty;
      idle.power_w = 0.5 * (*before->energy_j + *after->energy_j);
      // While the command ran the idle power would have been anywhere between the two.
      idle.random_w = std::hypot(0.5 * own_width(*before), 0.5 * own_width(*after), 0.5 * drift->value);
    } else {
      idle.power_w = *(before ? before : after)->energy_j;
      idle.random_w = own_width(before ? *before : *after);
    }
    idle.known = true;
    told.idle_w = idle.power_w;
    told.idle_uncertainty_w = idle.random_w;
    if (domain.scope != Scope::memory) out.told.push_back(std::move(told));
  }
  return out;
}

void find_drift(const std::vector<Baseline>& baselines, std::vector<Warning>& out) {
  const auto with_state = [](double watts, const std::string& state) {
    return state.empty() ? fmt::format("{:.4g} W", watts) : fmt::format("{:.4g} W ({})", watts, state);
  };
  for (const auto& b : baselines) {
    if (!b.drift_w) continue;
    const double larger = std::max(*b.before_w, *b.after_w);
    if (std::abs(*b.drift_w) <= *b.drift_uncertainty_w + std::max(kDriftWatts, kDriftShare * larger)) continue;
    out.push_back({"baseline-drift",
                   fmt::format("{} idled at {} before the command and at {} after it", b.domain,
                               with_state(*b.before_w, b.before), with_state(*b.after_w, b.after)),
                   "half of the difference is in the uncertainty of the net energy; idle for longer "
                   "(--idle-before, --idle-after), or compare gross energies"});
  }
}

}  // namespace ergometer
