#include "device/cpu_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

constexpr std::int64_t kMaxCpus = 1 << 16;  // bounds what a damaged list can cost

std::optional<int> small_int(const HostRoot& root, const std::string& path) {
  const auto text = read_file(root.path(path), 4096);
  const auto value = text ? parse_int(*text) : std::nullopt;
  if (!value || *value < 0 || *value >= kMaxCpus) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  if (trim(text).empty()) return cpus;
  for (const auto part : split(trim(text), ',')) {
    const auto dash = part.find('-');
    const auto first = parse_int(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_int(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMaxCpus) return std::nullopt;
    for (auto cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::vector<int> online_cpus(const HostRoot& root) {
  const auto text = read_file(root.path("/sys/devices/system/cpu/online"), 1 << 16);
  return text ? parse_cpu_list(*text).value_or(std::vector<int>{}) : std::vector<int>{};
}

std::optional<CpuPlace> cpu_place(const HostRoot& root, int cpu) {
  const auto folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
  const auto package = small_int(root, folder + "physical_package_id");
  if (!package) return std::nullopt;
  return CpuPlace{*package, small_int(root, folder + "die_id").value_or(0),
                  small_int(root, folder + "core_id").value_or(0)};
}

int count_packages(const HostRoot& root) {
  std::set<int> packages;
  for (const int cpu : online_cpus(root))
    if (const auto place = cpu_place(root, cpu)) packages.insert(place->package);
  return static_cast<int>(packages.size());
}

}  // namespace ergometer
