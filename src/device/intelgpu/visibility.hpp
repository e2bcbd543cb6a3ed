// Which Intel GPUs a command can use: ZE_AFFINITY_MASK and ONEAPI_DEVICE_SELECTOR, as Level Zero and SYCL document
// them. A pure function; used by the intelgpu discovery.
#pragma once

#include <optional>
#include <vector>

#include "base/environment.hpp"
#include "model/warning.hpp"

namespace ergometer::intelgpu {

struct Visibility {
  std::vector<bool> visible;       // one a card
  std::optional<Warning> unknown;  // a value that cannot be told: every card is visible then
};

// `cards`: all Intel cards in PCI order, also those inside a processor. `tiles`: whether one of them has several tiles,
// each of which may count as a device. Numbers are understood where there is one card, or where
// ZE_ENABLE_PCI_ID_DEVICE_ORDER=1 makes the runtime count in PCI order, and no card has several tiles.
[[nodiscard]] Visibility resolve_visibility(const Environment& environment, std::size_t cards, bool tiles);

}  // namespace ergometer::intelgpu
