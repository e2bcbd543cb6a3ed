#include "report/github_benchmark.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "model/region.hpp"

namespace ergometer {
namespace {

using BenchmarkJson = nlohmann::ordered_json;

void add_entry(BenchmarkJson& out, const std::string& name, const char* unit, const std::optional<double>& value,
               const std::optional<double>& uncertainty, const std::string& extra) {
  if (!value || !std::isfinite(*value)) return;
  BenchmarkJson entry{{"name", name}, {"unit", unit}, {"value", *value}};
  if (uncertainty && std::isfinite(*uncertainty)) entry["range"] = "\xC2\xB1 " + format_double(*uncertainty);
  if (!extra.empty()) entry["extra"] = extra;
  out.push_back(std::move(entry));
}

// Regions of one family together.
struct FamilySums {
  double count = 0, duration_s = 0, energy_j = 0;
  bool energy_known = true;
};

}  // namespace

std::string summary_github_benchmark(const Manifest& manifest, const Summary& summary) {
  BenchmarkJson out = BenchmarkJson::array();
  const std::string name = manifest.name.empty() ? "run" : manifest.name;
  const std::string partial = summary.run.partial ? "partial: not every device is in it" : "";
  add_entry(out, name + ": energy", "J", summary.run.energy_j, summary.run.uncertainty_j, partial);
  add_entry(out, name + ": time", "s", summary.run.duration_s, std::nullopt, "");
  std::vector<std::string> order;
  std::map<std::string, FamilySums> families;
  for (const auto& r : summary.regions) {
    if (r.cut) continue;  // a part is no measure of the whole
    Region region;
    region.path = r.path;
    const auto family = region.family();
    const auto [it, fresh] = families.try_emplace(family);
    if (fresh) order.push_back(family);
    it->second.count += static_cast<double>(r.count);
    it->second.duration_s += r.duration_s;
    it->second.energy_j += r.energy_j.value_or(0);
    it->second.energy_known = it->second.energy_known && r.energy_j.has_value();
  }
  for (const auto& family : order) {
    const auto& sums = families.at(family);
    const auto extra = fmt::format("mean of {}", sums.count);
    if (sums.energy_known) add_entry(out, family + ": energy", "J", sums.energy_j / sums.count, std::nullopt, extra);
    add_entry(out, family + ": time", "s", sums.duration_s / sums.count, std::nullopt, extra);
  }
  return out.dump(1, ' ', false, BenchmarkJson::error_handler_t::replace) + "\n";
}

}  // namespace ergometer
