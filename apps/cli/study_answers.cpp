#include "study_answers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "analysis/study_slice.hpp"
#include "base/number.hpp"
#include "report/table.hpp"
#include "report/units.hpp"
#include "run_live.hpp"

namespace ergometer::cli {
namespace {

constexpr std::size_t kMostRows = 40;  // of one table; the page has them all

std::string bounds_text(double value, const std::optional<Bounds>& bounds) {
  if (!bounds) return fmt::format("{:.3g}", value);
  return fmt::format("{:.3g} ({:.3g} to {:.3g})", value, bounds->low, bounds->high);
}

std::string share_text(double value, const std::optional<Bounds>& bounds) {
  if (!bounds) return percent_text(value);
  return fmt::format("{} ({} to {})", percent_text(value), percent_text(bounds->low), percent_text(bounds->high));
}

void print_rows(Table& table) {
  const std::size_t all = table.rows.size();
  if (all > kMostRows) table.rows.resize(kMostRows);
  fmt::print("{}", render_table(table, study_width(), 2));
  if (all > kMostRows) fmt::print("  ... and {} more: ergometer report has them all\n", all - kMostRows);
}

std::string setting_text(const std::string& name) { return printable(shortened(name.empty() ? "all" : name, 60)); }

void print_laws(const StudyTable& table, const MetricPair& metrics) {
  const auto laws = scaling_laws(table, metrics);
  if (laws.empty()) return;
  fmt::print("\nPower laws, y = a x^exponent{}:\n",
             std::ranges::any_of(laws, [](const auto& l) { return l.law.has_floor; }) ? " + c" : "");
  Table out;
  out.columns = {{"Of", false, 0},         {"against", false, 0}, {"at", false, 1},      {"exponent", true, 0},
                 {"R2", true, 2}, {"scatter", true, 3}, {"held-out error", true, 3}, {"range", true, 4}};
  for (const auto& [factor, metric, group, cells, law] : laws) {
    std::optional<Bounds> exponent;
    if (law.b_interval) exponent = Bounds{-law.b_interval->high, -law.b_interval->low};
    out.rows.push_back({metric_of(table, metric).value()->title, printable(factor), setting_text(group),
                        bounds_text(-law.b, exponent), fmt::format("{:.3f}", law.r_squared),
                        law.residual_share ? percent_text(*law.residual_share) : kMissing,
                        law.held_out_error ? percent_text(*law.held_out_error) : kMissing,
                        fmt::format("{:.4g} to {:.4g}", law.x_min, law.x_max)});
  }
  print_rows(out);
  fmt::print("  scatter: standard deviation around the law; held-out error: of each level predicted from the others\n");
}

void print_counts(const StudyTable& table, const MetricPair& metrics) {
  for (const auto& [factor, group, rows] : scaling_tables(table, metrics)) {
    fmt::print("\nScaling with {}{}:\n", printable(factor), group.empty() ? "" : ", " + printable(group));
    Table out;
    out.columns = {{factor, true, 0},       {"time", true, 1},   {"speed-up", true, 0}, {"efficiency", true, 0},
                   {"energy", true, 1}, {"energy, of the smallest", true, 0}};
    for (const auto& row : rows)
      out.rows.push_back({fmt::format("{:g}", row.gpus), centre_text(row.time_s, unit_of_metric(table, metrics.time)),
                          bounds_text(row.speed_up, row.speed_up_interval),
                          share_text(row.efficiency, row.efficiency_interval),
                          row.energy_j ? centre_text(*row.energy_j, unit_of_metric(table, metrics.energy)) : kMissing,
                          row.energy_ratio ? share_text(*row.energy_ratio, row.energy_ratio_interval) : kMissing});
    print_rows(out);
  }
}

void print_rates(const StudyTable& table) {
  const auto rates = energy_rates(table);
  if (rates.empty()) return;
  fmt::print("\nEnergy of the GPUs = k x GPU-hours:\n");
  Table out;
  out.columns = {{"Work", false, 0}, {"k per GPU-hour", true, 0}, {"that is, a GPU", true, 0}, {"R2", true, 2},
                 {"farthest run", true, 3}, {"runs", true, 1}};
  for (const auto& [work, rate] : rates) {
    std::string k = with_unit(rate.joules_per_gpu_hour, "J");
    if (rate.interval)
      k += fmt::format(" ({} to {})", with_unit(rate.interval->low, "J"), with_unit(rate.interval->high, "J"));
    out.rows.push_back({setting_text(work), k, with_unit(rate.mean_power_per_gpu_w, "W"),
                        fmt::format("{:.3f}", rate.r_squared), percent_text(rate.largest_deviation),
                        fmt::to_string(rate.runs)});
  }
  print_rows(out);
}

// --- protocol 2 -----------------------------------------------------------------------------------------------------

void print_p2_rows(const P2Tables& p2, const P2Names& names) {
  const bool model = names.energy_j.starts_with("modelled");
  fmt::print("\nBy class of node (Caspart et al. 2022{}):\n", model ? "; energy by model" : "");
  Table out;
  out.columns = {{"Phase", false, 0}, {"Setting", false, 1}, {"Class", false, 0}, {"Runtime", true, 0}, {"Energy", true, 0},
                 {"Mean power", true, 2}};
  for (const auto& component : names.components) out.columns.push_back({component, true, 3});
  for (const auto& row : p2.rows) {
    std::vector<std::string> cells{printable(row.phase), printable(row.setting), printable(row.node_class),
                                   centre_text(row.runtime_s, "s"), centre_text(row.energy_j, "J"),
                                   with_unit(row.mean_power_w, "W")};
    for (const auto& component : names.components) {
      const auto share = row.component_shares.find(component);
      cells.push_back(share == row.component_shares.end() ? "" : percent_text(share->second));
    }
    out.rows.push_back(std::move(cells));
  }
  print_rows(out);
}

void print_p2_ratios(const P2Tables& p2) {
  if (p2.ratios.empty()) return;
  fmt::print("\nIs runtime a proxy of energy?\n");
  Table out;
  out.columns = {{"Phase", false, 0}, {"Setting", false, 1}, {"Against", false, 0}, {"runtime x", true, 0},
                 {"energy x", true, 0}, {"runtime is wrong by", true, 0}, {"proxy", false, 0}};
  for (const auto& r : p2.ratios)
    out.rows.push_back({printable(r.phase), printable(r.setting), printable(fmt::format("{} : {}", r.a, r.b)),
                        bounds_text(r.runtime_ratio, r.runtime_interval), bounds_text(r.energy_ratio, r.energy_interval),
                        fmt::format("{:+.1f} %", 100 * r.proxy_error),
                        r.runtime_is_proxy ? (*r.runtime_is_proxy ? "yes" : "no") : kMissing});
  print_rows(out);
}

void print_p2_rest(const P2Tables& p2) {
  if (!p2.idle.empty()) fmt::print("\nAccelerators that were there and idle:\n");
  for (const auto& idle : p2.idle)
    fmt::print("  {}{}{}: {} went into idle GPUs, {} of the energy; {} on top of the rest\n",
               printable(idle.node_class), idle.phase.empty() ? "" : ", " + printable(idle.phase),
               idle.setting.empty() ? "" : ", " + printable(idle.setting), centre_text(idle.gpu_energy_j, "J"),
               percent_text(idle.share), percent_text(idle.penalty));
  if (!p2.break_even.empty()) fmt::print("\nCPU against GPU in inference:\n");
  for (const auto& even : p2.break_even) {
    const auto pair = fmt::format("{} against {}{}", even.cpu_class, even.gpu_class,
                                  even.setting.empty() ? "" : ", " + even.setting);
    if (even.kind == BreakEven::Kind::at_batch)
      fmt::print("  {}: even at a batch of about {:.3g} (between {:g} and {:g})\n", printable(pair), *even.batch, even.low,
                 even.high);
    else
      fmt::print("  {}: {} uses less energy at every batch from {:g} to {:g}\n", printable(pair),
                 printable(even.kind == BreakEven::Kind::gpu_always ? even.gpu_class : even.cpu_class), even.low, even.high);
  }
  for (const auto& missing : p2.missing) fmt::print("\n  not shown: {}\n", printable(missing));
}

}  // namespace

std::string study_number(double value, const std::string& unit) {
  // Short times keep three digits: a sample takes microseconds.
  if (unit == "s") return std::abs(value) < 0.1 && value != 0 ? with_unit(value, "s") : seconds_text(value) + " s";
  if (unit == "B") return bytes_text(value);
  if (unit == "1/s") return fmt::format("{:.4g}/s", value);  // a prefix would read "k1/s"
  return unit.empty() ? fmt::format("{:.4g}", value) : with_unit(value, unit);
}

std::string centre_text(const Centre& centre, const std::string& unit) {
  auto text = study_number(centre.value, unit);
  if (!centre.interval || centre.value == 0) return text;
  const double half = (centre.interval->high - centre.interval->low) / 2;
  const double percent = 100 * half / std::abs(centre.value);
  if (percent < 1e-6) return text;  // rounding of equal values
  return text + (percent < 99.5 ? fmt::format(" \u00b1{:.2g}%", percent) : fmt::format(" \u00b1{:.0f}%", percent));
}

std::string unit_of_metric(const StudyTable& table, const std::string& metric) {
  const auto found = metric_of(table, metric);
  return found ? (*found)->unit : "";
}

std::size_t study_width() { return ::isatty(STDOUT_FILENO) == 1 ? static_cast<std::size_t>(terminal_width()) : 220; }

void print_scaling(const StudyTable& table, const MetricPair& metrics) {
  print_counts(table, metrics);
  print_laws(table, metrics);
  print_rates(table);
}

Result<void> print_predictions(const StudyTable& table, const MetricPair& metrics, const std::vector<std::string>& wanted) {
  const auto laws = scaling_laws(table, metrics);
  for (const auto& text : wanted) {
    const auto equals = text.find('=');
    const std::string factor = text.substr(0, equals);
    const auto x = equals == std::string::npos ? std::nullopt : parse_double(text.substr(equals + 1));
    if (!x || !(*x > 0))
      return fail(ErrorCode::invalid_argument, fmt::format("--predict cannot be \"{}\"", text),
                  "give a factor and a number above 0: --predict gpus=16");
    Table out;
    out.columns = {{"Of", false, 0}, {"at", false, 1}, {text, true, 0}, {"95 % interval of one run", true, 0}};
    std::string warning;
    for (const auto& law : laws) {
      if (law.factor != factor) continue;
      const auto told = predict(law.law, *x);
      const auto unit = unit_of_metric(table, law.metric);
      out.rows.push_back({metric_of(table, law.metric).value()->title, setting_text(law.group), study_number(told.value, unit),
                          told.interval ? fmt::format("{} to {}", study_number(told.interval->low, unit),
                                                      study_number(told.interval->high, unit))
                                        : kMissing});
      if (told.warning) warning = *told.warning;
    }
    if (out.rows.empty()) {
      if (!factor_index(table, factor)) return tl::unexpected(cells_at(table, {{factor, ""}}).error());
      return fail(ErrorCode::invalid_argument, fmt::format("there is no power law against {}", factor),
                  "a law needs runs at three levels of it that are numbers");
    }
    fmt::print("\nBy the power laws, {}:\n", printable(text));
    print_rows(out);
    if (!warning.empty()) fmt::print("  warning: {}\n", warning);
  }
  return {};
}

void print_p2(const StudyTable& table) {
  const auto names = p2_names(table);
  if (!names) return;
  const auto p2 = p2_tables(table, *names);
  if (!p2) return static_cast<void>(fmt::print("\n  no tables by class of node: {}\n", printable(p2.error().message)));
  print_p2_rows(*p2, *names);
  print_p2_ratios(*p2);
  print_p2_rest(*p2);
}

}  // namespace ergometer::cli
