#include "report/openmetrics.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>
#include <vector>

#include "base/number.hpp"

namespace ergometer {
namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

std::string label_value(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

// A metric with its lines; nothing if it has none.
class MetricFamily {
 public:
  MetricFamily(const char* name, const char* unit, const char* help) : name_(name), unit_(unit), help_(help) {}
  void add(const Labels& labels, const std::optional<double>& value) {
    const std::string number = value ? format_double(*value) : "";
    if (number.empty()) return;
    lines_ += name_;
    const char* separator = "{";
    for (const auto& [key, text] : labels) {
      lines_ += fmt::format("{}{}=\"{}\"", separator, key, label_value(text));
      separator = ",";
    }
    lines_ += (labels.empty() ? " " : "} ") + number + "\n";
  }
  [[nodiscard]] std::string text() const {
    if (lines_.empty()) return {};
    std::string out = fmt::format("# TYPE {} gauge\n", name_);
    if (*unit_) out += fmt::format("# UNIT {} {}\n", name_, unit_);
    return out + fmt::format("# HELP {} {}\n", name_, help_) + lines_;
  }

 private:
  const char *name_, *unit_, *help_;
  std::string lines_;
};

}  // namespace

std::string summary_openmetrics(const Manifest& manifest, const Summary& summary) {
  const std::string name = manifest.name.empty() ? "run" : manifest.name;
  MetricFamily duration("ergometer_run_duration_seconds", "seconds", "Time from the start to the end of the command.");
  MetricFamily energy("ergometer_run_energy_joules", "joules", "Measured energy of the run.");
  MetricFamily net("ergometer_run_net_energy_joules", "joules", "Energy above the idle power measured before.");
  MetricFamily uncertainty("ergometer_run_energy_uncertainty_joules", "joules",
                           "Half-width of the 95 % interval of the energy.");
  MetricFamily domain("ergometer_domain_energy_joules", "joules", "Energy by domain of the machine.");
  MetricFamily power("ergometer_domain_power_mean_watts", "watts", "Mean power by domain of the machine.");
  MetricFamily coverage("ergometer_domain_coverage_ratio", "ratio", "Share of the run that readings cover.");
  MetricFamily region("ergometer_region_energy_joules", "joules", "Measured energy by region of the workload.");
  MetricFamily region_time("ergometer_region_duration_seconds", "seconds", "Time by region of the workload.");
  const Labels run{{"run", name}};
  duration.add(run, summary.run.duration_s);
  energy.add(run, summary.run.energy_j);
  net.add(run, summary.run.net_energy_j);
  uncertainty.add(run, summary.run.uncertainty_j);
  for (const auto& node : summary.nodes) {
    for (const auto& d : node.domains) {
      const Labels labels{{"run", name},           {"node", node.name},          {"domain", d.domain},
                          {"device", d.device},    {"scope", to_word(d.scope)},  {"method", to_word(d.method)},
                          {"measured", d.measured ? "true" : "false"}};
      domain.add(labels, d.energy_j);
      power.add(labels, d.mean_power_w);
      if (d.energy_j) coverage.add(labels, d.coverage);
    }
  }
  for (const auto& r : summary.regions) {
    Labels labels{{"run", name}, {"path", r.path}};
    if (r.rank >= 0) labels.emplace_back("rank", fmt::format("{}", r.rank));
    // A path that came twice is told apart by its beginning: two lines of the same labels are not allowed.
    labels.emplace_back("begin_seconds", format_double(r.t_begin_s));
    region.add(labels, r.energy_j);
    region_time.add(labels, r.duration_s);
  }
  std::string out;
  for (const auto* family : {&duration, &energy, &net, &uncertainty, &domain, &power, &coverage, &region, &region_time})
    out += family->text();
  return out + "# EOF\n";
}

}  // namespace ergometer
