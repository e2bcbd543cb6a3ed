#include "study/cell_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/number.hpp"

namespace ergometer {
namespace {

const char* gpu_knob(FactorKind kind) {
  switch (kind) {
    case FactorKind::power_limit: return "power";
    case FactorKind::graphics_clock: return "clock";
    case FactorKind::memory_clock: return "memory-clock";
    default: return nullptr;
  }
}

const char* cpu_control(FactorKind kind) {
  switch (kind) {
    case FactorKind::cpu_power_limit: return "package/power";
    case FactorKind::cpu_frequency: return "cpu/frequency";
    case FactorKind::governor: return "cpu/governor";
    default: return nullptr;
  }
}

std::optional<int> gpu_index(const std::string& control) {
  if (!control.starts_with("gpu/")) return std::nullopt;
  const auto number = parse_int(std::string_view(control).substr(4, control.find('/', 4) - 4));
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

// The GPUs of a cell; nullopt if the study does not choose.
Result<std::optional<std::vector<StudyGpu>>> gpus_of(const StudyFile& file, const std::vector<std::size_t>& levels,
                                                     const StudyMachine& machine) {
  for (std::size_t f = 0; f < file.factors.size(); ++f) {
    if (file.factors[f].kind != FactorKind::gpus) continue;
    const auto& level = file.factors[f].levels[levels[f]];
    std::vector<StudyGpu> chosen;
    if (const auto named = named_gpus(level); !named.empty()) {
      for (const int index : named) {
        const auto found = std::ranges::find(machine.gpus, index, &StudyGpu::index);
        if (found == machine.gpus.end())
          return fail(ErrorCode::not_found, fmt::format("gpus \"{}\": there is no GPU {} here", level, index),
                      "`ergometer sensors` lists the GPUs of this machine");
        chosen.push_back(*found);
      }
      return chosen;
    }
    const auto count = static_cast<std::size_t>(parse_int(level).value_or(0));
    if (count > machine.gpus.size())
      return fail(ErrorCode::not_found, fmt::format("gpus {}: this machine has {} that can be used", level, machine.gpus.size()),
                  "leave the level out, or run the study where there are more");
    chosen.assign(machine.gpus.begin(), machine.gpus.begin() + static_cast<std::ptrdiff_t>(count));
    return chosen;
  }
  if (!file.gpus.empty()) return machine.gpus;
  return std::nullopt;
}

bool has_backend(const StudyMachine& machine, std::string_view backend) {
  return std::ranges::any_of(machine.controls.controls,
                             [&](const auto& control) { return control->describe().backend == backend; });
}

// Every control that a factor's level asks for, on the GPUs of the cell.
std::vector<ControlRequest> requests_of(const Factor& factor, const std::string& level,
                                        const std::optional<std::vector<StudyGpu>>& gpus, const StudyMachine& machine) {
  std::vector<ControlRequest> requests;
  if (!is_control(factor.kind) || level == kDefaultLevel) return requests;
  const auto value = control_value(factor, level);
  if (const char* control = cpu_control(factor.kind)) {
    requests.push_back({control, value});
  } else if (const char* knob = gpu_knob(factor.kind)) {
    if (gpus)
      for (const auto& gpu : *gpus) requests.push_back({fmt::format("gpu/{}/{}", gpu.index, knob), value});
    else if (!has_backend(machine, "nvml") && has_backend(machine, "amdgpu"))
      requests.push_back({fmt::format("gpu-card/{}", knob), value});
    else
      requests.push_back({fmt::format("visible/{}", knob), value});
  } else {
    requests.push_back({factor.name, value});
  }
  return requests;
}

Error for_level(Error error, const Factor& factor, const std::string& level) {
  error.message = fmt::format("{} {}: {}", factor.name, level, error.message);
  return error;
}

// Cells that differ in nothing that is set here need to be looked at once.
std::vector<std::vector<std::size_t>> distinct_setups(const StudyFile& file, const std::vector<StudyCell>& cells) {
  std::set<std::vector<std::size_t>> seen;
  std::vector<std::vector<std::size_t>> distinct;
  std::vector<std::size_t> key;
  for (const auto& cell : cells) {
    key.clear();
    for (std::size_t f = 0; f < file.factors.size(); ++f)
      if (is_control(file.factors[f].kind) || file.factors[f].kind == FactorKind::gpus) key.push_back(cell.levels[f]);
    if (seen.insert(key).second) distinct.push_back(cell.levels);
  }
  return distinct;
}

}  // namespace

bool has_controls(const StudyFile& file) {
  return std::ranges::any_of(file.factors, [](const Factor& factor) { return is_control(factor.kind); });
}

bool needs_machine(const StudyFile& file) {
  return has_controls(file) || !file.gpus.empty() || std::ranges::any_of(file.factors, [](const Factor& factor) {
           return factor.kind == FactorKind::gpus;
         });
}

StudyMachine machine_of(const StudyFile& file, ControlDiscovery controls) {
  StudyMachine machine;
  for (const auto& control : controls.controls) {
    const auto& info = control->describe();
    const auto index = gpu_index(info.name);
    if (!index || std::ranges::find(machine.gpus, *index, &StudyGpu::index) != machine.gpus.end()) continue;
    const bool wanted = file.gpus.empty() ? info.visible.value_or(true)
                                          : std::ranges::find(file.gpus, *index) != file.gpus.end();
    if (wanted) machine.gpus.push_back({*index, info.device_id});
  }
  std::ranges::sort(machine.gpus, {}, &StudyGpu::index);
  machine.controls = std::move(controls);
  return machine;
}

Result<CellSetup> setup_of(const StudyFile& file, const std::vector<std::size_t>& levels, const StudyMachine& machine) {
  CellSetup setup;
  const auto gpus = gpus_of(file, levels, machine);
  if (!gpus) return tl::unexpected(gpus.error());
  if (*gpus) {
    std::string list;
    for (const auto& gpu : **gpus)
      list += fmt::format("{}{}", list.empty() ? "" : ",", gpu.uuid.empty() ? fmt::to_string(gpu.index) : gpu.uuid);
    setup.environment["CUDA_VISIBLE_DEVICES"] = list;
  }
  std::vector<ControlRequest> all;
  for (std::size_t f = 0; f < file.factors.size(); ++f) {
    const auto& level = file.factors[f].levels[levels[f]];
    const auto requests = requests_of(file.factors[f], level, *gpus, machine);
    // Each for itself first, so that an error names the factor.
    if (const auto planned = plan_controls(requests, machine.controls); !planned)
      return tl::unexpected(for_level(planned.error(), file.factors[f], level));
    all.insert(all.end(), requests.begin(), requests.end());
  }
  auto settings = plan_controls(all, machine.controls);
  if (!settings) return tl::unexpected(settings.error());
  setup.settings = std::move(*settings);
  return setup;
}

SettingsSurvey survey_settings(const StudyFile& file, const std::vector<StudyCell>& cells, const StudyMachine& machine) {
  SettingsSurvey survey;
  for (const auto& levels : distinct_setups(file, cells)) {
    auto setup = setup_of(file, levels, machine);
    if (!setup) {
      const auto& message = setup.error().message;
      if (std::ranges::none_of(survey.lacking, [&](const auto& known) { return known.message == message; }))
        survey.lacking.push_back(std::move(setup.error()));
      continue;
    }
    for (auto& setting : setup->settings)
      if (std::ranges::none_of(survey.settings, [&](const auto& known) {
            return known.control == setting.control && known.value == setting.value;
          }))
        survey.settings.push_back(std::move(setting));
  }
  return survey;
}

std::vector<std::vector<std::optional<double>>> level_values_of(const StudyFile& file, const StudyMachine& machine) {
  std::vector<std::vector<std::optional<double>>> all;
  for (const auto& factor : file.factors) {
    auto& values = all.emplace_back();
    for (const auto& level : factor.levels) {
      auto value = level_number(factor, level);
      if (!value && level.ends_with('%')) {
        const auto planned = plan_controls(requests_of(factor, level, machine.gpus.empty() ? std::nullopt : std::optional(machine.gpus), machine), machine.controls);
        if (planned && !planned->empty())
          value = number_of(planned->front().value) / (factor.unit == "MHz" ? 1e6 : 1);
      }
      values.push_back(value);
    }
  }
  return all;
}

}  // namespace ergometer
