#include "device/intelgpu/visibility.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer::intelgpu {
namespace {

using Positions = std::vector<std::size_t>;

const std::string* variable(const Environment& environment, const char* name) {
  const auto it = environment.find(name);
  return it == environment.end() ? nullptr : &it->second;
}

// "0,1.2": devices, or parts of them, by number. A number beyond the last names nothing.
std::optional<Positions> numbers(std::string_view list, const Positions& from) {
  Positions out;
  for (const auto part : split(list, ',')) {
    const auto number = parse_uint(trim(split(part, '.').front()));
    if (!number) return std::nullopt;
    if (*number < from.size() && std::ranges::find(out, from[*number]) == out.end()) out.push_back(from[*number]);
  }
  return out;
}

// Terms "BACKEND:DEVICES" separated by ';', of which any may select. Terms that discard ("!...") are not told.
std::optional<Positions> selected(std::string_view text, const Positions& from, bool counted) {
  Positions out;
  const auto take = [&](const Positions& some) {
    for (const auto p : some)
      if (std::ranges::find(out, p) == out.end()) out.push_back(p);
  };
  for (const auto part : split(text, ';')) {
    const auto term = lower(trim(part));
    const auto colon = term.find(':');
    if (colon == std::string::npos || term.starts_with('!')) return std::nullopt;
    const auto backend = term.substr(0, colon), devices = term.substr(colon + 1);
    if (backend == "cuda" || backend == "hip" || backend == "native_cpu") continue;
    if (backend != "*" && backend != "level_zero" && backend != "opencl") return std::nullopt;
    if (devices == "cpu" || devices == "fpga") continue;
    if (devices == "*" || devices == "gpu") {
      take(from);
      continue;
    }
    const auto some = backend == "level_zero" && counted ? numbers(devices, from) : std::nullopt;
    if (!some) return std::nullopt;
    take(*some);
  }
  return out;
}

Warning not_known(const char* name, const std::string& value) {
  return {"gpu-visibility-unknown",
          fmt::format("{}={}: which Intel GPUs the command can use is not known; all of them are counted", name, value),
          "set ZE_ENABLE_PCI_ID_DEVICE_ORDER=1, and ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE on cards of several tiles"};
}

}  // namespace

Visibility resolve_visibility(const Environment& environment, std::size_t cards, bool tiles) {
  Visibility out{std::vector<bool>(cards, true), std::nullopt};
  const auto* pci_order = variable(environment, "ZE_ENABLE_PCI_ID_DEVICE_ORDER");
  const auto* hierarchy = variable(environment, "ZE_FLAT_DEVICE_HIERARCHY");
  const bool whole_cards = !tiles || (hierarchy && *hierarchy == "COMPOSITE");
  const bool counted = whole_cards && (cards == 1 || (pci_order && *pci_order == "1"));
  Positions order;
  for (std::size_t i = 0; i < cards; ++i) order.push_back(i);
  if (const auto* mask = variable(environment, "ZE_AFFINITY_MASK"); mask && !mask->empty()) {
    const auto picked = counted ? numbers(*mask, order) : std::nullopt;
    if (!picked) {
      out.unknown = not_known("ZE_AFFINITY_MASK", *mask);
      return out;
    }
    order = *picked;
  }
  if (const auto* selector = variable(environment, "ONEAPI_DEVICE_SELECTOR"); selector && !selector->empty()) {
    const auto picked = selected(*selector, order, counted);
    if (!picked) {
      out.unknown = not_known("ONEAPI_DEVICE_SELECTOR", *selector);
      return out;
    }
    order = *picked;
  }
  for (std::size_t i = 0; i < cards; ++i) out.visible[i] = std::ranges::find(order, i) != order.end();
  return out;
}

}  // namespace ergometer::intelgpu
