#include "study/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace ergometer {
namespace {

enum class AcrossNodes { sum, slowest, mean };

struct MetricRow {
  StudyMetric metric;
  AcrossNodes across;
};

const std::vector<MetricRow>& metric_rows() {
  static const std::vector<MetricRow> rows{
      {{"duration_s", "time", "s", true}, AcrossNodes::slowest},
      {{"energy_j", "energy", "J", true}, AcrossNodes::sum},
      {{"net_energy_j", "energy above idle", "J", true}, AcrossNodes::sum},
      {{"modelled_energy_j", "energy by model", "J", true}, AcrossNodes::sum},
      {{"gpu_energy_j", "energy of the GPUs", "J", true}, AcrossNodes::sum},
      {{"cpu_energy_j", "energy of the processors", "J", true}, AcrossNodes::sum},
      {{"dram_energy_j", "energy of the memory", "J", true}, AcrossNodes::sum},
      {{"other_energy_j", "energy of other parts", "J", true}, AcrossNodes::sum},
      {{"mean_power_w", "mean power", "W", true}, AcrossNodes::sum},
      {{"seconds_per_epoch", "time per epoch", "s", true}, AcrossNodes::slowest},
      {{"energy_per_epoch_j", "energy per epoch", "J", true}, AcrossNodes::sum},
      {{"modelled_energy_per_epoch_j", "energy per epoch by model", "J", true}, AcrossNodes::sum},
      {{"counter_energy_per_epoch_j", "energy per epoch, counter", "J", true}, AcrossNodes::sum},
      {{"integral_energy_per_epoch_j", "energy per epoch, integral", "J", true}, AcrossNodes::sum},
      {{"product_energy_per_epoch_j", "energy per epoch, time x mean power", "J", true}, AcrossNodes::sum},
      {{"samples_per_s", "samples per second", "1/s", false}, AcrossNodes::mean},
      {{"seconds_per_sample", "time per sample", "s", true}, AcrossNodes::mean},
      {{"energy_per_sample_j", "energy per sample", "J", true}, AcrossNodes::mean},
      {{"modelled_energy_per_sample_j", "energy per sample by model", "J", true}, AcrossNodes::mean},
      {{"loss", "loss", "", true}, AcrossNodes::mean},
      {{"validation_loss", "validation loss", "", true}, AcrossNodes::mean},
      {{"accuracy", "accuracy", "", false}, AcrossNodes::mean},
      {{"validation_accuracy", "validation accuracy", "", false}, AcrossNodes::mean},
      {{"gpu_count", "GPUs used", "", true}, AcrossNodes::sum},
      {{"gpu_memory_used_bytes", "GPU memory used, most", "B", true}, AcrossNodes::sum},
      {{"gpu_memory_active_ratio", "GPU memory active", "", false}, AcrossNodes::mean},
      {{"gpu_active_ratio", "GPU active", "", false}, AcrossNodes::mean},
      {{"sm_active_ratio", "SM utilisation", "", false}, AcrossNodes::mean},
      {{"cpu_ratio", "CPUs busy by the command", "", false}, AcrossNodes::sum},
      {{"memory_bytes", "memory of the command, most", "B", true}, AcrossNodes::sum},
      {{"coverage_ratio", "time covered by readings", "", false}, AcrossNodes::mean}};
  return rows;
}

using Metrics = std::map<std::string, StudyValue>;

void put(Metrics& out, const char* name, const std::optional<double>& value,
         const std::optional<double>& uncertainty = {}) {
  if (value && std::isfinite(*value)) out[name] = {*value, uncertainty};
}

// Mean over the GPUs of a column's mean.
std::optional<double> gpu_mean(const MeasuredRun& run, const std::string& column) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& [key, channel] : run.readings)
    if (is_used_gpu(run, key) && key.ends_with("/" + column) && channel.count > 0) {
      sum += channel.mean();
      ++count;
    }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

std::optional<double> gpu_peak_sum(const MeasuredRun& run, const std::string& column) {
  std::optional<double> sum;
  for (const auto& [key, channel] : run.readings)
    if (is_used_gpu(run, key) && key.ends_with("/" + column) && channel.count > 0)
      sum = sum.value_or(0) + channel.highest;
  return sum;
}

// --- epochs ---------------------------------------------------------------------------------------------------------

std::vector<const RegionEnergy*> regions_named(const Summary& summary, std::string_view name) {
  std::vector<const RegionEnergy*> found;
  for (const auto& region : summary.regions)
    if (region.name == name && !region.cut) found.push_back(&region);
  return found;
}

// A row holds the same epoch of every rank: as one.
double each(const RegionEnergy& region, double sum) { return sum / static_cast<double>(region.count); }

std::vector<const DomainEnergy*> compared_domains(const std::vector<DomainEnergy>& domains) {
  std::vector<const DomainEnergy*> gpus, all;
  for (const auto& domain : domains) {
    if (!domain.in_total || !domain.measured) continue;
    all.push_back(&domain);
    if (domain.scope == Scope::gpu) gpus.push_back(&domain);
  }
  return gpus.empty() ? all : gpus;
}

bool is_integral(Method method) {
  return method == Method::samples || method == Method::integral || method == Method::average;
}

// Of one domain by a kind of method, the chosen one first.
std::optional<double> energy_by(const DomainEnergy& domain, bool integral) {
  const auto fits = [&](Method method) { return integral ? is_integral(method) : method == Method::counter; };
  if (fits(domain.method)) return domain.energy_j;
  for (const auto& other : domain.alternatives)
    if (fits(other.method) && other.energy_j) return other.energy_j;
  return std::nullopt;
}

std::optional<double> energy_by(const RegionEnergy& region, bool integral) {
  std::optional<double> sum;
  for (const auto* domain : compared_domains(region.domains)) {
    const auto energy = energy_by(*domain, integral);
    if (!energy) return std::nullopt;
    sum = sum.value_or(0) + each(region, *energy);
  }
  return sum;
}

// Mean of the power readings of those devices, as a log of nvidia-smi would give it.
std::optional<double> mean_of_power_readings(const MeasuredRun& run) {
  if (run.summary.nodes.empty()) return std::nullopt;
  std::optional<double> sum;
  for (const auto* domain : compared_domains(run.summary.nodes.front().domains)) {
    const ChannelReadings* best = nullptr;
    for (const auto& [key, channel] : run.readings) {
      const bool of_domain = key.starts_with(domain->domain + "/") && channel.quantity == Quantity::power &&
                             channel.method && channel.in_total && channel.count > 0;
      if (of_domain && (!best || static_cast<int>(*channel.method) < static_cast<int>(*best->method))) best = &channel;
    }
    if (!best) return std::nullopt;
    sum = sum.value_or(0) + best->mean();
  }
  return sum;
}

std::optional<double> mean_over(const std::vector<const RegionEnergy*>& regions,
                                std::optional<double> (*value)(const RegionEnergy&)) {
  double sum = 0;
  for (const auto* region : regions) {
    const auto one = value(*region);
    if (!one) return std::nullopt;
    sum += *one;
  }
  return regions.empty() ? std::nullopt : std::optional(sum / static_cast<double>(regions.size()));
}

std::optional<double> each_energy(const RegionEnergy& r) {
  return r.energy_j ? std::optional(each(r, *r.energy_j)) : std::nullopt;
}
std::optional<double> each_uncertainty(const RegionEnergy& r) {
  return r.uncertainty_j ? std::optional(each(r, *r.uncertainty_j)) : std::nullopt;
}
std::optional<double> each_modelled(const RegionEnergy& r) {
  return r.modelled_j ? std::optional(each(r, *r.modelled_j)) : std::nullopt;
}
std::optional<double> each_duration(const RegionEnergy& r) { return each(r, r.duration_s); }
std::optional<double> by_counter(const RegionEnergy& r) { return energy_by(r, false); }
std::optional<double> by_integral(const RegionEnergy& r) { return energy_by(r, true); }
std::optional<double> work_of(const RegionEnergy& r) {
  for (const char* key : {"samples", "molecules", "tokens"})
    if (const auto found = r.metrics.find(key); found != r.metrics.end() && found->second > 0) return found->second;
  return std::nullopt;
}

void add_work(const std::vector<const RegionEnergy*>& regions, Metrics& out) {
  const auto work = mean_over(regions, work_of), time = mean_over(regions, each_duration);
  if (!work || !time || *time <= 0) return;
  put(out, "samples_per_s", *work / *time);
  put(out, "seconds_per_sample", *time / *work);
  if (const auto energy = mean_over(regions, each_energy)) {
    const auto uncertainty = mean_over(regions, each_uncertainty);
    put(out, "energy_per_sample_j", *energy / *work, uncertainty ? std::optional(*uncertainty / *work) : std::nullopt);
  }
  if (const auto modelled = mean_over(regions, each_modelled)) put(out, "modelled_energy_per_sample_j", *modelled / *work);
}

void add_epochs(const MeasuredRun& run, Metrics& out) {
  const auto epochs = regions_named(run.summary, "epoch");
  if (epochs.empty()) return add_work(regions_named(run.summary, "infer"), out);
  const auto time = mean_over(epochs, each_duration);
  put(out, "seconds_per_epoch", time);
  // The errors of one run's epochs are alike (a sensor's gain), so their mean is no smaller.
  put(out, "energy_per_epoch_j", mean_over(epochs, each_energy), mean_over(epochs, each_uncertainty));
  put(out, "modelled_energy_per_epoch_j", mean_over(epochs, each_modelled));
  put(out, "counter_energy_per_epoch_j", mean_over(epochs, by_counter));
  put(out, "integral_energy_per_epoch_j", mean_over(epochs, by_integral));
  if (const auto power = mean_of_power_readings(run); power && time)
    put(out, "product_energy_per_epoch_j", *power * *time);
  add_work(epochs, out);
  for (const char* key : {"loss", "validation_loss", "accuracy", "validation_accuracy"})
    if (const auto found = epochs.back()->metrics.find(key); found != epochs.back()->metrics.end())
      put(out, key, found->second);
}

const char* component_of(Scope scope) {
  switch (scope) {
    case Scope::gpu: return "gpu_energy_j";
    case Scope::package: return "cpu_energy_j";
    case Scope::dram: return "dram_energy_j";
    default: return "other_energy_j";
  }
}

// The run's energy by kind of part: together they are energy_j. A kind of which one part is not known is left out.
void add_components(const Summary& summary, Metrics& out) {
  std::map<std::string, std::optional<double>> sums;
  int gpus = 0;
  for (const auto& node : summary.nodes)
    for (const auto& domain : node.domains) {
      if (!domain.in_total || !domain.measured) continue;
      if (domain.scope == Scope::gpu) ++gpus;
      auto [sum, is_new] = sums.try_emplace(component_of(domain.scope), 0.0);
      if (sum->second && domain.energy_j)
        *sum->second += *domain.energy_j;
      else
        sum->second.reset();
    }
  for (const auto& [name, sum] : sums) put(out, name.c_str(), sum);
  if (gpus > 0) put(out, "gpu_count", gpus);
}

}  // namespace

const std::vector<StudyMetric>& study_metrics() {
  static const std::vector<StudyMetric> metrics = [] {
    std::vector<StudyMetric> all;
    for (const auto& row : metric_rows()) all.push_back(row.metric);
    return all;
  }();
  return metrics;
}

bool is_used_gpu(const MeasuredRun& run, const std::string& key) {
  if (!key.starts_with("gpu/")) return false;
  bool any = false;
  for (const auto& node : run.summary.nodes)
    for (const auto& domain : node.domains) {
      if (domain.scope != Scope::gpu || !domain.in_total) continue;
      if (key.starts_with(domain.domain + "/")) return true;
      any = true;
    }
  return !any;
}

Metrics metrics_of(const MeasuredRun& run) {
  Metrics out;
  const auto& whole = run.summary.run;
  put(out, "duration_s", whole.duration_s);
  put(out, "energy_j", whole.energy_j, whole.uncertainty_j);
  put(out, "net_energy_j", whole.net_energy_j, whole.net_uncertainty_j);
  put(out, "modelled_energy_j", whole.modelled_j);
  if (whole.energy_j && whole.duration_s && *whole.duration_s > 0)
    put(out, "mean_power_w", *whole.energy_j / *whole.duration_s);
  add_components(run.summary, out);
  add_epochs(run, out);
  put(out, "gpu_memory_used_bytes", gpu_peak_sum(run, "memory_used_bytes"));
  put(out, "gpu_memory_active_ratio", gpu_mean(run, "memory_active_ratio"));
  put(out, "gpu_active_ratio", gpu_mean(run, "gpu_active_ratio"));
  put(out, "sm_active_ratio", gpu_mean(run, "sm_active_ratio"));
  if (const auto cpu = run.readings.find("tree/cpu_s");
      cpu != run.readings.end() && cpu->second.count > 1 && whole.duration_s && *whole.duration_s > 0)
    put(out, "cpu_ratio", cpu->second.growth() / *whole.duration_s);
  if (const auto memory = run.readings.find("tree/rss_sum_bytes");
      memory != run.readings.end() && memory->second.count > 0)
    put(out, "memory_bytes", memory->second.highest);
  std::optional<double> coverage;
  for (const auto& node : run.summary.nodes)
    for (const auto& domain : node.domains)
      if (domain.in_total && domain.measured) coverage = std::min(coverage.value_or(1), domain.coverage);
  put(out, "coverage_ratio", coverage);
  return out;
}

Metrics metrics_of_nodes(const std::vector<MeasuredRun>& nodes) {
  std::vector<Metrics> all;
  for (const auto& node : nodes) all.push_back(metrics_of(node));
  if (all.size() == 1) return all.front();
  Metrics out;
  for (const auto& row : metric_rows()) {
    const auto& name = row.metric.name;
    std::vector<StudyValue> values;
    for (const auto& metrics : all)
      if (const auto found = metrics.find(name); found != metrics.end()) values.push_back(found->second);
    // Ranks other than the first of a node may have no markers; energy that one node lacks makes no sum.
    if (values.empty() || (row.across == AcrossNodes::sum && values.size() < all.size())) continue;
    StudyValue joined{0, std::nullopt};
    for (const auto& value : values) {
      if (row.across == AcrossNodes::slowest)
        joined.value = std::max(joined.value, value.value);
      else
        joined.value += value.value;
      if (value.uncertainty) joined.uncertainty = joined.uncertainty.value_or(0) + *value.uncertainty;
    }
    if (row.across == AcrossNodes::mean) {
      joined.value /= static_cast<double>(values.size());
      if (joined.uncertainty) *joined.uncertainty /= static_cast<double>(values.size());
    }
    out[name] = joined;
  }
  return out;
}

}  // namespace ergometer
