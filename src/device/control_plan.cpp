#include "device/control_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

using Controls = std::vector<std::shared_ptr<Control>>;

std::vector<std::string> names_of(const ControlDiscovery& found) {
  std::vector<std::string> names;
  for (const auto& control : found.controls) names.push_back(control->describe().name);
  return names;
}

bool is_device(const ControlInfo& info, std::string_view wanted) {
  const auto device = device_of(info.name);
  return device == wanted || info.device_id == wanted ||
         (device.starts_with(wanted) && device.substr(wanted.size()).starts_with('/'));
}

// "frequency" stands for the pair "min-frequency" and "max-frequency".
bool is_knob(std::string_view knob, std::string_view wanted) {
  if (knob == wanted) return true;
  return (knob.starts_with("min-") || knob.starts_with("max-")) && knob.substr(4) == wanted;
}

Error unknown_name(const std::string& name, const ControlDiscovery& found) {
  const auto names = names_of(found);
  const auto nearest = nearest_name(name, names);
  Error error{ErrorCode::not_found, fmt::format("there is no control \"{}\" here", name), {}};
  error.hint = nearest.empty() ? "`ergometer control show` lists those that there are"
                               : fmt::format("did you mean \"{}\"? `ergometer control show` lists all", nearest);
  return error;
}

// Never a device that was not named.
Error no_device(const ControlRequest& request, const ControlDiscovery& found) {
  std::vector<std::string> devices;
  for (const auto& control : found.controls)
    if (is_knob(knob_of(control->describe().name), request.name))
      devices.push_back(fmt::format("{}/{}={}", device_of(control->describe().name), request.name, request.value));
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  if (devices.empty()) return unknown_name(request.name, found);
  if (devices.size() > 4) devices.resize(4);
  return {ErrorCode::invalid_argument, fmt::format("\"{}\" names no device", request.name),
          fmt::format("write one of: {}", fmt::join(devices, ", "))};
}

Result<Controls> visible_controls(std::string_view knob, const ControlDiscovery& found) {
  Controls chosen;
  bool unknown = false;
  for (const auto& control : found.controls) {
    const auto& info = control->describe();
    if (info.backend != "nvml" || !is_knob(knob_of(info.name), knob)) continue;
    if (!info.visible) unknown = true;
    if (info.visible.value_or(false)) chosen.push_back(control);
  }
  if (unknown)
    return fail(
        ErrorCode::unavailable,
        "which GPUs CUDA_VISIBLE_DEVICES means is not certain: different models, and libcuda could not be asked",
        "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the GPU: gpu/0 or its UUID");
  if (chosen.empty())
    return fail(ErrorCode::not_found, fmt::format("no visible GPU has the control \"{}\"", knob),
                "look at CUDA_VISIBLE_DEVICES, or name the GPU: gpu/0");
  return chosen;
}

Result<Controls> controls_of(const ControlRequest& request, const ControlDiscovery& found) {
  const auto device = device_of(request.name), knob = knob_of(request.name);
  if (device.empty()) return tl::unexpected(no_device(request, found));
  if (device == "visible") return visible_controls(knob, found);
  Controls chosen;
  for (const auto& control : found.controls)
    if (is_device(control->describe(), device) && is_knob(knob_of(control->describe().name), knob))
      chosen.push_back(control);
  if (chosen.empty()) return tl::unexpected(unknown_name(request.name, found));
  return chosen;
}

std::string examples(const ControlInfo& info) {
  const auto range = range_text(info);
  const auto takes = range.empty() ? std::string() : fmt::format("{} takes {}; ", info.name, range);
  switch (info.unit) {
    case ControlUnit::watts:
      return takes + "write it as 200W, or as 80% of the default";
    case ControlUnit::hertz:
      return takes + "write it as 1200MHz, or as 53% of the highest";
    case ControlUnit::word:
      break;
  }
  return takes + "write one of these words";
}

// The supported values just below and above.
std::string nearest_two(const ControlInfo& info, double number) {
  const auto above = std::ranges::lower_bound(info.choices, number, {}, number_of);
  if (above == info.choices.begin()) return to_text(*above);
  if (above == info.choices.end()) return to_text(info.choices.back());
  return fmt::format("{} or {}", to_text(*std::prev(above)), to_text(*above));
}

Result<ControlValue> from_percent(const ControlInfo& info, double percent) {
  const bool power = info.unit == ControlUnit::watts;
  std::optional<ControlValue> whole = power ? info.default_value : info.highest;
  if (!power && !info.choices.empty()) whole = info.choices.back();
  if (!whole)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: {:g}% of what is not known: the device tells no {}", info.name, percent,
                            power ? "default" : "highest value"),
                "write the value itself");
  const double number = number_of(*whole) * percent / 100;
  if (info.choices.empty()) {
    // As fine as devices are: a milliwatt, a kilohertz.
    return make_value(info.unit, power ? std::round(number * 1e3) / 1e3 : std::round(number / 1e3) * 1e3);
  }
  const auto distance = [&](const ControlValue& choice) { return std::abs(number_of(choice) - number); };
  return *std::ranges::min_element(info.choices, {}, distance);
}

Result<ControlSetting> setting_of(const std::shared_ptr<Control>& control, const std::string& text) {
  const auto& info = control->describe();
  if (text.ends_with('%') && info.unit != ControlUnit::word) {
    const auto percent = parse_double(std::string_view(text).substr(0, text.size() - 1));
    if (!percent || *percent <= 0 || *percent > 1000)
      return fail(ErrorCode::invalid_argument, fmt::format("{}: \"{}\" is no percentage", info.name, text),
                  examples(info));
    auto value = from_percent(info, *percent);
    if (!value) return tl::unexpected(value.error());
    if (*percent > 100 && !info.choices.empty())
      return fail(ErrorCode::invalid_argument, fmt::format("{}: {} is above the highest value", info.name, text),
                  examples(info));
    if (auto checked = check_value(info, *value); !checked) {
      checked.error().message += fmt::format(" ({} asked)", text);
      return tl::unexpected(checked.error());
    }
    return ControlSetting{control, *value, text};
  }
  const auto value = parse_value(text, info.unit);
  if (!value)
    return fail(ErrorCode::invalid_argument, fmt::format("{}: \"{}\" is no value for it", info.name, text),
                examples(info));
  if (auto checked = check_value(info, *value); !checked) return tl::unexpected(checked.error());
  return ControlSetting{control, *value, {}};
}

// Adds what a setting needs to have an effect, unless it holds or was asked for itself.
Result<void> add_needs(std::vector<ControlSetting>& settings, const ControlDiscovery& found) {
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const auto needs = settings[i].control->describe().needs;
    for (const auto& [name, value] : needs) {
      const auto same_name = [&](const auto& control) { return control->describe().name == name; };
      const auto it = std::ranges::find_if(found.controls, same_name);
      if (it == found.controls.end() || std::ranges::any_of(settings, same_name, &ControlSetting::control)) continue;
      const auto now = (*it)->get();
      if (!now) return tl::unexpected(now.error());
      if (!same_value((*it)->describe(), *now, value)) settings.push_back({*it, value, {}});
    }
  }
  return {};
}

// -1: widens the range of its pair, 1: narrows it, 0: neither.
int direction(const ControlSetting& setting) {
  const auto& info = setting.control->describe();
  if (info.bound == Bound::none) return 0;
  const auto now = setting.control->get();
  if (!now) return 0;
  const double change = number_of(setting.value) - number_of(*now);
  return (info.bound == Bound::upper) == (change > 0) ? -1 : 1;
}

}  // namespace

Result<ControlRequest> parse_control_request(std::string_view text) {
  const auto equals = text.find('=');
  const auto name = trim(text.substr(0, equals));
  if (equals == std::string_view::npos || name.empty() || trim(text.substr(equals + 1)).empty())
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is not NAME=VALUE", text),
                "write it as gpu/0/power=200W; `ergometer control show` lists the names");
  return ControlRequest{std::string(name), std::string(trim(text.substr(equals + 1)))};
}

Result<void> check_value(const ControlInfo& info, const ControlValue& value) {
  if (unit_of(value) != info.unit)
    return fail(ErrorCode::invalid_argument, fmt::format("{} is no value for {}", to_text(value), info.name),
                examples(info));
  const double number = number_of(value);
  if (!info.choices.empty()) {
    if (std::ranges::any_of(info.choices, [&](const auto& choice) { return same_value(info, choice, value); }))
      return {};
    const auto message = fmt::format("{} does not take {}", info.name, to_text(value));
    if (info.unit == ControlUnit::word) {
      std::vector<std::string> words;
      for (const auto& choice : info.choices) words.push_back(to_text(choice));
      const auto nearest = nearest_name(to_text(value), words);
      return fail(ErrorCode::invalid_argument, message,
                  fmt::format("{}it takes {}", nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest),
                              range_text(info)));
    }
    return fail(ErrorCode::invalid_argument, message,
                fmt::format("write {}; it takes {}", nearest_two(info, number), range_text(info)));
  }
  if (info.unit == ControlUnit::word) return {};
  if ((info.lowest && number < number_of(*info.lowest)) || (info.highest && number > number_of(*info.highest)))
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: {} is outside what the device takes", info.name, to_text(value)),
                fmt::format("it takes {}", range_text(info)));
  return {};
}

Result<std::vector<ControlSetting>> plan_controls(std::span<const ControlRequest> requests,
                                                  const ControlDiscovery& found) {
  std::vector<ControlSetting> settings;
  for (const auto& request : requests) {
    const auto controls = controls_of(request, found);
    if (!controls) return tl::unexpected(controls.error());
    for (const auto& control : *controls) {
      auto setting = setting_of(control, request.value);
      if (!setting) return tl::unexpected(setting.error());
      if (std::ranges::any_of(settings, [&](const auto& s) { return s.control == control; }))
        return fail(ErrorCode::invalid_argument, fmt::format("{} is set twice", control->describe().name),
                    "name each control once");
      settings.push_back(std::move(*setting));
    }
  }
  if (auto added = add_needs(settings, found); !added) return tl::unexpected(added.error());
  sort_for_setting(settings);
  return settings;
}

void sort_for_setting(std::vector<ControlSetting>& settings) {
  std::vector<std::pair<int, ControlSetting>> keyed;
  for (auto& setting : settings) keyed.emplace_back(direction(setting), std::move(setting));
  std::ranges::stable_sort(keyed, [](const auto& a, const auto& b) {
    const int first = a.second.control->describe().rank, second = b.second.control->describe().rank;
    return first != second ? first < second : a.first < b.first;
  });
  settings.clear();
  for (auto& [key, setting] : keyed) settings.push_back(std::move(setting));
}

std::vector<ControlValue> levels_downward(const ControlInfo& info, double step) {
  std::vector<ControlValue> levels;
  if (!info.lowest || !info.highest || step <= 0) return levels;
  const double high = number_of(*info.highest), low = number_of(*info.lowest);
  for (int i = 0; high - i * step >= low - 1e-9; ++i) levels.push_back(make_value(info.unit, high - i * step));
  return levels;
}

}  // namespace ergometer
