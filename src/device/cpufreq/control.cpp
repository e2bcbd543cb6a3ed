#include "device/cpufreq/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/file_control.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

constexpr double kPerHertz = 1e-3;  // the files hold kHz

std::vector<std::string> words_of(const fs::path& file) {
  const std::string text = trimmed_text(file);
  std::vector<std::string> words;
  for (const auto word : split(text, ' '))
    if (!word.empty()) words.emplace_back(word);
  return words;
}

struct Policy {
  int number = 0;
  fs::path folder;
};

std::vector<Policy> policies(const fs::path& top) {
  std::vector<Policy> found;
  for (const auto& name : list_dir(top))
    if (const auto number = name.starts_with("policy") ? parse_uint(std::string_view(name).substr(6)) : std::nullopt)
      found.push_back({static_cast<int>(*number), top / name});
  std::ranges::sort(found, {}, &Policy::number);
  return found;
}

ControlInfo basics(const Policy& policy, const char* knob) {
  ControlInfo info;
  info.name = fmt::format("cpu/{}/{}", policy.number, knob);
  info.backend = "cpufreq";
  info.device_id = policy.folder.filename().string();
  const auto driver = trimmed_text(policy.folder / "scaling_driver");
  info.device_name =
      fmt::format("CPUs {}{}{}", trimmed_text(policy.folder / "affected_cpus"), driver.empty() ? "" : ", ", driver);
  return info;
}

void add_governor(const Policy& policy, ControlDiscovery& out) {
  const auto file = policy.folder / "scaling_governor";
  if (trimmed_text(file).empty()) return;
  auto info = basics(policy, "governor");
  info.unit = ControlUnit::word;
  for (auto& word : words_of(policy.folder / "scaling_available_governors")) info.choices.emplace_back(std::move(word));
  info.rank = 1;
  out.controls.push_back(std::make_shared<FileControl>(std::move(info), file, FileFormat{}));
}

void add_frequency(const Policy& policy, Bound bound, ControlDiscovery& out) {
  const bool lower = bound == Bound::lower;
  const auto file = policy.folder / (lower ? "scaling_min_freq" : "scaling_max_freq");
  if (!file_number(file, kPerHertz)) return;
  auto info = basics(policy, lower ? "min-frequency" : "max-frequency");
  info.unit = ControlUnit::hertz;
  info.bound = bound;
  info.rank = 2;
  const auto hertz = [&](const char* name) -> std::optional<ControlValue> {
    const auto value = file_number(policy.folder / name, kPerHertz);
    return value ? std::optional<ControlValue>(Hertz(*value)) : std::nullopt;
  };
  info.lowest = hertz("cpuinfo_min_freq");
  info.highest = hertz("cpuinfo_max_freq");
  info.default_value = lower ? info.lowest : info.highest;
  for (const auto& word : words_of(policy.folder / "scaling_available_frequencies"))
    if (const auto khz = parse_uint(word)) info.choices.emplace_back(Hertz(static_cast<double>(*khz) / kPerHertz));
  std::ranges::sort(info.choices, {}, number_of);
  out.controls.push_back(std::make_shared<FileControl>(std::move(info), file, FileFormat{kPerHertz}));
}

}  // namespace

void find_cpufreq_controls(const HostRoot& root, ControlDiscovery& out) {
  const auto before = out.controls.size();
  const auto top = root.path("/sys/devices/system/cpu/cpufreq");
  for (const auto& policy : policies(top)) {
    add_governor(policy, out);
    add_frequency(policy, Bound::upper, out);
    add_frequency(policy, Bound::lower, out);
  }
  if (out.controls.size() == before)
    out.absences.push_back({"cpufreq", "CPU frequency and governor", "no policy in " + top.string(),
                            "virtual machines have none; else load a driver such as intel_pstate or acpi-cpufreq"});
}

}  // namespace ergometer
