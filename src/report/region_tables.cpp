#include "report/region_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/table.hpp"
#include "report/units.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kMostSingles = 12;  // regions of one family that get a row each, unless they are epochs
constexpr std::size_t kMostEpochs = 500;
constexpr std::size_t kPathWidth = 40;

using Regions = std::vector<const RegionEnergy*>;

// "train/epoch[3]/step" -> "train/epoch/step".
std::string family_of(const std::string& path) {
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '[' && path.find(']', i) != std::string::npos) inside = true;
    if (!inside) out += path[i];
    if (path[i] == ']') inside = false;
  }
  return out;
}

struct Family {
  std::string path;
  Regions members;
  [[nodiscard]] std::int64_t count() const {
    std::int64_t n = 0;
    for (const auto* r : members) n += r->count;
    return n;
  }
};

// The rows to show: the run's, or each rank's own.
const std::vector<RegionEnergy>& rows_of(const Summary& summary, GroupBy by) {
  return by == GroupBy::rank && !summary.rank_regions.empty() ? summary.rank_regions : summary.regions;
}

std::vector<Family> families_of(const Summary& summary, GroupBy by) {
  std::vector<Family> families;
  std::map<std::string, std::size_t> index;
  for (const auto& r : rows_of(summary, by)) {
    const std::string path =
        by == GroupBy::rank ? fmt::format("{} {} {}", family_of(r.path), r.node, r.rank) : family_of(r.path);
    const auto [it, added] = index.try_emplace(path, families.size());
    if (added) families.push_back({path, {}});
    families[it->second].members.push_back(&r);
  }
  return families;
}

bool is_epoch(const Family& f) { return f.path == "epoch" || f.path.ends_with("/epoch"); }
bool below_epoch(const Family& f) {
  return f.path.starts_with("epoch/") || f.path.find("/epoch/") != std::string::npos;
}

// Which regions get a row each, in time order, and which families are told as a whole.
struct Selection {
  Regions singles;
  std::vector<Family> pooled;
};

Selection select(const Summary& summary, GroupBy by) {
  Selection out;
  for (auto& family : families_of(summary, by)) {
    const bool deep = family.path.find('/') != std::string::npos;
    if (by == GroupBy::phase && deep) continue;
    const auto count = static_cast<std::size_t>(family.count());
    const bool pool = count != family.members.size() ||
                      (is_epoch(family) ? count > kMostEpochs : count > kMostSingles) ||
                      (below_epoch(family) && count > 1);
    if (pool) {
      out.pooled.push_back(std::move(family));
    } else {
      out.singles.insert(out.singles.end(), family.members.begin(), family.members.end());
    }
  }
  std::stable_sort(out.singles.begin(), out.singles.end(),
                   [](const auto* a, const auto* b) { return a->t_begin_s < b->t_begin_s; });
  return out;
}

std::string label_of(const RegionEnergy& r, bool ranked) {
  std::string label = printable(r.path);
  if (ranked && r.rank >= 0) label += fmt::format(" rank {}", r.rank);
  if (!r.node.empty()) label += " on " + printable(r.node);
  if (r.cut) label += " (cut)";
  return label;
}

std::optional<double> metric(const RegionEnergy& r, const std::string& key) {
  const auto it = r.metrics.find(key);
  return it == r.metrics.end() ? std::nullopt : std::optional(it->second);
}

// Values of "gpu/N/COLUMN" over the GPUs that reported one.
std::vector<double> gpu_values(const RegionEnergy& r, std::string_view column) {
  std::vector<double> values;
  for (const auto& [key, value] : r.metrics)
    if (key.starts_with("gpu/") && key.size() > column.size() && key.ends_with(column) &&
        key[key.size() - column.size() - 1] == '/')
      values.push_back(value);
  return values;
}

std::string gpu_mean(const RegionEnergy& r, std::string_view column) {
  const auto values = gpu_values(r, column);
  if (values.empty()) return kMissing;
  double sum = 0;
  for (const double v : values) sum += v;
  const auto gpus = std::count_if(r.domains.begin(), r.domains.end(),
                                  [](const DomainEnergy& d) { return d.scope == Scope::gpu && d.in_total; });
  std::string cell = percent_text(sum / static_cast<double>(values.size()));
  if (static_cast<std::size_t>(gpus) > values.size()) cell += fmt::format(" ({} of {})", values.size(), gpus);
  return cell;
}

std::string gpu_sum_bytes(const RegionEnergy& r, std::string_view column) {
  const auto values = gpu_values(r, column);
  if (values.empty()) return kMissing;
  double sum = 0;
  for (const double v : values) sum += v;
  return bytes_text(sum);
}

std::string energy_cell(const RegionEnergy& r) {
  if (!r.energy_j) return kMissing;
  return with_unit(*r.energy_j, "J") + (r.low_confidence ? "?" : "");
}

std::string power_cell(const RegionEnergy& r) {
  if (!r.energy_j || r.duration_s <= 0) return kMissing;
  return with_unit(*r.energy_j / r.duration_s, "W");
}

std::string or_missing(const std::optional<double>& value, const auto& text) {
  return value ? text(*value) : std::string(kMissing);
}

// A table whose columns come and go with the data: a column without any value is not added.
struct Builder {
  const Regions& rows;
  Table table;
  explicit Builder(const Regions& regions) : rows(regions) { table.rows.resize(regions.size()); }
  template <class Cell>
  void add(std::string title, bool right, int rank, bool always, Cell cell) {
    std::vector<std::string> cells;
    for (const auto* r : rows) cells.push_back(cell(*r));
    const bool any = std::any_of(cells.begin(), cells.end(), [](const auto& c) { return c != kMissing && !c.empty(); });
    if (!any && !always) return;
    table.columns.push_back({std::move(title), right, rank});
    for (std::size_t i = 0; i < cells.size(); ++i) table.rows[i].push_back(std::move(cells[i]));
  }
};

bool several_ranks(const Regions& regions) {
  return std::any_of(regions.begin(), regions.end(), [&](const auto* r) { return r->rank != regions.front()->rank; });
}

// Whether some lines are of fewer ranks than others; where all are of all, the heading has said so.
bool several_counts(const Regions& regions) {
  return std::any_of(regions.begin(), regions.end(), [&](const auto* r) { return r->ranks != regions.front()->ranks; });
}

void add_work(Builder& b) {
  for (const auto& [key, title] : {std::pair{"energy_per_sample_j", "J/sample"},
                                   {"energy_per_token_j", "J/token"},
                                   {"energy_per_molecule_j", "J/molecule"}})
    b.add(title, true, 2, false, [&](const RegionEnergy& r) {
      return or_missing(metric(r, key), [](double v) { return fmt::format("{:.3g}", v); });
    });
}

void add_use(Builder& b) {
  b.add("CPU cores", true, 3, false, [](const RegionEnergy& r) {
    return or_missing(metric(r, "tree/cpu_ratio"), [](double v) { return fmt::format("{:.2f}", v); });
  });
  const bool sm = std::any_of(b.rows.begin(), b.rows.end(),
                              [](const auto* r) { return !gpu_values(*r, "sm_active_ratio").empty(); });
  b.add(sm ? "SM active" : "GPU active", true, 3, false,
        [&](const RegionEnergy& r) { return gpu_mean(r, sm ? "sm_active_ratio" : "gpu_active_ratio"); });
  b.add("GPU mem", true, 5, false, [](const RegionEnergy& r) { return gpu_sum_bytes(r, "peak_memory_used_bytes"); });
  b.add("RAM", true, 5, false, [](const RegionEnergy& r) {
    for (const char* key : {"tree/peak_pss_bytes", "tree/peak_rss_sum_bytes"})
      if (const auto v = metric(r, key)) return bytes_text(*v);
    return std::string(kMissing);
  });
}

// What the workload told itself: any number that is no sensor's ("domain/column") and not derived here.
void add_attributes(Builder& b) {
  std::set<std::string> found;
  for (const auto* r : b.rows)
    for (const auto& [key, value] : r->metrics)
      if (key.find('/') == std::string::npos && !key.starts_with("energy_per_")) found.insert(key);
  // What a reader looks for first comes first and stays longest where the terminal is narrow.
  std::vector<std::string> keys;
  for (const char* first : {"loss", "validation_loss", "accuracy", "validation_accuracy"})
    if (found.erase(first) > 0) keys.emplace_back(first);
  const std::size_t foremost = keys.size();
  keys.insert(keys.end(), found.begin(), found.end());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    const bool amount = key == "samples" || key == "tokens" || key == "molecules" || key == "steps";
    b.add(printable(key), true,
          amount         ? 7
          : i < foremost ? 4
                         : 6,
          false, [&](const RegionEnergy& r) {
            return or_missing(metric(r, key),
                              [&](double v) { return amount ? fmt::format("{:.0f}", v) : fmt::format("{:.4g}", v); });
          });
  }
}

Table single_table(const Regions& rows) {
  Builder b(rows);
  const bool ranked = several_ranks(rows);
  b.add("Region", false, 0, true, [&](const RegionEnergy& r) { return shortened(label_of(r, ranked), kPathWidth); });
  if (several_counts(rows))
    b.add("Ranks", true, 4, false,
          [](const RegionEnergy& r) { return r.ranks > 0 ? fmt::format("{}", r.ranks) : std::string(kMissing); });
  b.add("Time s", true, 0, true, [](const RegionEnergy& r) { return seconds_text(r.duration_s); });
  b.add("Energy", true, 0, true, energy_cell);
  b.add("\xC2\xB1", true, 1, false, [](const RegionEnergy& r) { return with_unit(r.uncertainty_j, "J", 2); });
  b.add("Estimate", true, 1, false, [](const RegionEnergy& r) {
    return r.modelled_j ? "~" + with_unit(*r.modelled_j, "J", 2) : std::string(kMissing);
  });
  b.add("Power", true, 1, false, power_cell);
  add_work(b);
  add_use(b);
  add_attributes(b);
  return std::move(b.table);
}

// Domains as columns.
Table domain_table(const Regions& rows) {
  std::vector<std::string> names;
  for (const auto* r : rows)
    for (const auto& d : r->domains)
      if (d.energy_j && std::find(names.begin(), names.end(), d.domain) == names.end()) names.push_back(d.domain);
  Builder b(rows);
  const bool ranked = several_ranks(rows);
  b.add("Region", false, 0, true, [&](const RegionEnergy& r) { return shortened(label_of(r, ranked), kPathWidth); });
  b.add("Total", true, 0, true, energy_cell);
  for (const auto& name : names)
    b.add(printable(name), true, 1, false, [&](const RegionEnergy& r) {
      for (const auto& d : r.domains)
        if (d.domain == name && d.energy_j) return (d.measured ? "" : "~") + with_unit(*d.energy_j, "J");
      return std::string(kMissing);
    });
  for (const auto& [title, by] :
       {std::pair{"Time x TDP", &Shortcuts::tdp_j}, {"Time x mean", &Shortcuts::mean_power_j}})
    b.add(title, true, 2, false, [by = by](const RegionEnergy& r) {
      const auto& value = r.shortcuts.*by;
      return value && r.energy_j && *r.energy_j > 0 ? error_text(*value, *r.energy_j) : std::string(kMissing);
    });
  return std::move(b.table);
}

struct Spread {
  double mean = 0, deviation = 0;
};

// Of the members' energies, if each is a single region with a known energy.
std::optional<Spread> spread_of(const Family& family) {
  Spread out;
  if (family.members.size() < 2) return std::nullopt;
  for (const auto* r : family.members) {
    if (!r->energy_j || r->count != 1) return std::nullopt;
    out.mean += *r->energy_j;
  }
  const auto n = static_cast<double>(family.members.size());
  out.mean /= n;
  for (const auto* r : family.members) out.deviation += std::pow(*r->energy_j - out.mean, 2);
  out.deviation = std::sqrt(out.deviation / (n - 1));
  return out;
}

// One short region among many says nothing about the others.
bool mostly_doubtful(const Regions& regions) {
  const auto doubtful = std::count_if(regions.begin(), regions.end(), [](const auto* r) { return r->low_confidence; });
  return 2 * static_cast<std::size_t>(doubtful) > regions.size();
}

Table pooled_table(const std::vector<Family>& families) {
  Table table;
  table.columns = {{"Repeated", false, 0}, {"Count", true, 0}, {"Mean time s", true, 1}, {"Mean energy", true, 0},
                   {"Spread", true, 1},    {"Power", true, 2}, {"Sum", true, 1},         {"Estimate", true, 1}};
  const bool estimated = std::any_of(families.begin(), families.end(), [](const Family& f) {
    return std::any_of(f.members.begin(), f.members.end(), [](const auto* r) { return r->modelled_j.has_value(); });
  });
  for (const auto& f : families) {
    std::optional<double> energy, modelled;
    double time = 0, timed = 0;
    std::int64_t known = 0;
    for (const auto* r : f.members) {
      time += r->duration_s;
      if (r->modelled_j) modelled = modelled.value_or(0) + *r->modelled_j;
      if (!r->energy_j) continue;
      energy = energy.value_or(0) + *r->energy_j;
      timed += r->duration_s;
      known += r->count;
    }
    const auto n = static_cast<double>(f.count());
    const auto spread = spread_of(f);
    const bool low = mostly_doubtful(f.members);
    table.rows.push_back({shortened(printable(f.path), kPathWidth), fmt::format("{}", f.count()),
                          seconds_text(time / n),
                          energy ? with_unit(*energy / static_cast<double>(known), "J") + (low ? "?" : "") : kMissing,
                          spread ? "\xC2\xB1 " + with_unit(spread->deviation, "J", 2) : "",
                          energy && timed > 0 ? with_unit(*energy / timed, "W") : kMissing, with_unit(energy, "J"),
                          modelled    ? "~" + with_unit(*modelled / n, "J", 2)
                          : estimated ? kMissing
                                      : ""});
  }
  return table;
}

// "train: 4 epochs complete, 10.00 J each; 1 cut".
std::string epoch_lines(const std::vector<Family>& families) {
  std::string out;
  for (const auto& f : families) {
    if (!is_epoch(f)) continue;
    std::size_t complete = 0, cut = 0, known = 0;
    double energy = 0;
    for (const auto* r : f.members) {
      cut += r->cut ? 1 : 0;
      if (r->cut) continue;
      complete += static_cast<std::size_t>(r->count);
      if (!r->energy_j) continue;
      known += static_cast<std::size_t>(r->count);
      energy += *r->energy_j;
    }
    out += fmt::format("  {}: {} complete", printable(f.path), complete);
    if (known > 0) out += fmt::format(", mean {} each", with_unit(energy / static_cast<double>(known), "J"));
    out += cut > 0 ? fmt::format("; {} cut\n", cut) : "\n";
  }
  return out;
}

}  // namespace

std::string region_tables(const Summary& summary, const TextOptions& options) {
  if (summary.regions.empty()) return {};
  const auto width = static_cast<std::size_t>(std::max(40, options.width));
  const Selection selection = select(summary, options.by);
  std::string out;
  if (!selection.singles.empty()) {
    out += '\n';
    out += render_table(
        options.by == GroupBy::domain ? domain_table(selection.singles) : single_table(selection.singles), width);
  }
  if (!selection.pooled.empty()) out += "\n" + render_table(pooled_table(selection.pooled), width);
  const auto epochs = epoch_lines(families_of(summary, options.by));
  if (options.by == GroupBy::epoch && !epochs.empty()) out += "\n" + epochs;
  const bool marked = std::any_of(selection.singles.begin(), selection.singles.end(),
                                  [](const auto* r) { return r->low_confidence; }) ||
                      std::any_of(selection.pooled.begin(), selection.pooled.end(),
                                  [](const Family& f) { return mostly_doubtful(f.members); });
  if (marked) out += "  ? shorter than the sensors resolve\n";
  return out;
}

}  // namespace ergometer
