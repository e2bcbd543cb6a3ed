#include "analysis/p2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "analysis/decision.hpp"
#include "analysis/study_slice.hpp"

namespace ergometer {
namespace {

constexpr double kUnusedActivity = 0.01;  // below this the accelerators had nothing to do

// A row with what later tables need of it.
struct Measured {
  P2Row row;
  std::size_t cell = 0;
  std::optional<double> batch;
  std::string setting_but_batch;
  std::optional<Centre> gpu_energy_j, sample_energy_j;
  std::optional<double> gpu_activity;
  [[nodiscard]] bool idle() const { return gpu_energy_j && gpu_activity && *gpu_activity < kUnusedActivity; }
};

bool has_metric(const StudyTable& table, const std::string& name) { return metric_of(table, name).has_value(); }

// Sums over runs that know the whole and the part, so that a run without one of them does not count for the other.
std::optional<double> share_in(const StudyTable& table, std::size_t cell, const std::string& part,
                               const std::string& whole) {
  double sum = 0, all = 0;
  for (const auto& run : table.runs) {
    if (run.cell != cell || run.verdict != Verdict::valid) continue;
    const auto a = run.metrics.find(part), b = run.metrics.find(whole);
    if (a == run.metrics.end() || b == run.metrics.end()) continue;
    sum += a->second.value;
    all += b->second.value;
  }
  return all > 0 ? std::optional(sum / all) : std::nullopt;
}

class P2Maker {
 public:
  P2Maker(const StudyTable& table, const P2Names& names)
      : table_(table), names_(names), class_(factor_index(table, names.node_class)),
        phase_(factor_index(table, names.phase)), batch_(factor_index(table, names.batch)) {
    std::vector<std::size_t> all(table.cells.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    varying_ = all.empty() ? std::vector<std::size_t>{} : varying_factors(table, all);
    std::erase_if(varying_, [&](std::size_t f) { return f == class_ || f == phase_; });
    varying_but_batch_ = varying_;
    std::erase_if(varying_but_batch_, [&](std::size_t f) { return f == batch_; });
  }

  P2Tables make() {
    for (std::size_t cell = 0; cell < table_.cells.size(); ++cell) measure(cell);
    for (const auto& m : measured_) out_.rows.push_back(m.row);
    if (measured_.empty()) out_.missing.push_back("no cell has valid runs with both runtime and energy");
    compare();
    find_idle();
    find_break_even();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const std::string& level(std::size_t cell, std::size_t factor) const {
    return table_.factors[factor].levels[table_.cells[cell].levels[factor]];
  }

  void measure(std::size_t cell) {
    const auto runtime = centre_in(table_, cell, names_.runtime_s), energy = centre_in(table_, cell, names_.energy_j);
    if (!runtime || !energy) return;
    Measured m;
    m.cell = cell;
    m.row = {level(cell, *class_), phase_ ? level(cell, *phase_) : "",
             varying_.empty() ? "" : cell_name(table_, cell, varying_), *runtime, *energy, std::nullopt, {}};
    m.setting_but_batch = varying_but_batch_.empty() ? "" : cell_name(table_, cell, varying_but_batch_);
    if (runtime->value > 0) m.row.mean_power_w = energy->value / runtime->value;
    for (const auto& component : names_.components)
      if (const auto share = share_in(table_, cell, component + "_energy_j", names_.energy_j))
        m.row.component_shares[component] = *share;
    if (batch_) m.batch = table_.factors[*batch_].values[table_.cells[cell].levels[*batch_]];
    m.gpu_energy_j = centre_in(table_, cell, "gpu_energy_j");
    m.sample_energy_j =
        centre_in(table_, cell, has_metric(table_, names_.energy_per_sample_j) ? names_.energy_per_sample_j
                                                                               : names_.energy_j);
    if (const auto activity = centre_in(table_, cell, names_.gpu_activity)) m.gpu_activity = activity->value;
    measured_.push_back(std::move(m));
  }

  void compare() {
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      for (std::size_t j = i + 1; j < measured_.size(); ++j) {
        const P2Row &a = measured_[i].row, &b = measured_[j].row;
        if (a.phase != b.phase || a.setting != b.setting || a.node_class == b.node_class) continue;
        const Change time = change_of(a.runtime_s, b.runtime_s), energy = change_of(a.energy_j, b.energy_j);
        P2Ratio out{a.node_class, b.node_class, a.phase, a.setting, 1 + time.share, 1 + energy.share, {}, {}, 0, {}};
        out.proxy_error = out.energy_ratio / out.runtime_ratio - 1;
        if (time.interval) out.runtime_interval = Bounds{1 + time.interval->low, 1 + time.interval->high};
        if (energy.interval) out.energy_interval = Bounds{1 + energy.interval->low, 1 + energy.interval->high};
        if (time.interval && energy.interval) {
          const double half = std::hypot(std::log((1 + time.interval->high) / out.runtime_ratio),
                                         std::log((1 + energy.interval->high) / out.energy_ratio));
          out.runtime_is_proxy = std::abs(std::log1p(out.proxy_error)) <= half;
        }
        out_.ratios.push_back(std::move(out));
      }
    }
    if (out_.ratios.empty())
      out_.missing.push_back("ratios of energy and runtime: they need two node classes at the same phase and setting");
  }

  void find_idle() {
    bool known = false;
    for (const auto& m : measured_) {
      known = known || (m.gpu_energy_j && m.gpu_activity);
      if (!m.idle()) continue;
      const auto share = m.row.component_shares.find("gpu");
      if (share == m.row.component_shares.end() || !(share->second < 1)) continue;
      out_.idle.push_back({m.row.node_class, m.row.phase, m.row.setting, *m.gpu_energy_j, share->second,
                           1 / (1 - share->second) - 1});
    }
    if (!known)
      out_.missing.push_back(fmt::format(
          "penalty of idle accelerators: it needs the metrics gpu_energy_j and {}", names_.gpu_activity));
  }

  [[nodiscard]] bool is_inference(const Measured& m) const {
    return !phase_ || m.row.phase == names_.inference;
  }

  using Class = std::tuple<std::string, std::string, bool>;  // name, setting but batch, computes on GPUs
  using ByBatch = std::map<double, double>;                  // energy a sample

  void find_break_even() {
    std::map<Class, ByBatch> classes;
    for (const auto& m : measured_)
      if (m.batch && *m.batch > 0 && m.sample_energy_j && is_inference(m))
        classes[{m.row.node_class, m.setting_but_batch, m.gpu_energy_j && !m.idle()}][*m.batch] =
            m.sample_energy_j->value;
    for (const auto& [cpu, cpu_values] : classes)
      for (const auto& [gpu, gpu_values] : classes)
        if (!std::get<2>(cpu) && std::get<2>(gpu) && std::get<1>(cpu) == std::get<1>(gpu))
          add_break_even(cpu, cpu_values, std::get<0>(gpu), gpu_values);
    if (out_.break_even.empty())
      out_.missing.push_back(fmt::format("batch at which CPU and GPU break even: it needs {} at the same values of {} "
                                         "(numbers above 0) with and without GPUs",
                                         names_.inference, names_.batch));
  }

  void add_break_even(const Class& cpu, const ByBatch& cpu_values, const std::string& gpu, const ByBatch& gpu_values) {
    // ln of GPU over CPU at the batches that both have.
    std::vector<std::pair<double, double>> ratio;
    for (const auto& [batch, value] : cpu_values)
      if (const auto it = gpu_values.find(batch); it != gpu_values.end() && value > 0 && it->second > 0)
        ratio.emplace_back(batch, std::log(it->second / value));
    if (ratio.empty()) return;
    BreakEven out{std::get<0>(cpu), gpu, std::get<1>(cpu), BreakEven::Kind::gpu_always, std::nullopt,
                  ratio.front().first, ratio.back().first};
    if (ratio.front().second > 0) out.kind = BreakEven::Kind::cpu_always;
    for (std::size_t i = 1; i < ratio.size(); ++i) {
      const auto [low, before] = ratio[i - 1];
      const auto [high, after] = ratio[i];
      if ((before > 0) == (after > 0)) continue;
      out.kind = BreakEven::Kind::at_batch;
      out.batch = low * std::pow(high / low, before / (before - after));
      out.low = low;
      out.high = high;
      break;
    }
    out_.break_even.push_back(std::move(out));
  }

  const StudyTable& table_;
  const P2Names& names_;
  std::optional<std::size_t> class_, phase_, batch_;
  std::vector<std::size_t> varying_, varying_but_batch_;
  std::vector<Measured> measured_;
  P2Tables out_;
};

}  // namespace

Result<P2Tables> p2_tables(const StudyTable& table, const P2Names& names) {
  if (!factor_index(table, names.node_class))
    return fail(ErrorCode::invalid_argument, fmt::format("the study has no factor \"{}\"", names.node_class),
                "the tables compare classes of nodes: a study over several of them has it");
  for (const auto& name : {names.runtime_s, names.energy_j})
    if (const auto known = metric_of(table, name); !known) return tl::unexpected(known.error());
  return P2Maker(table, names).make();
}

}  // namespace ergometer
