// The account of a whole node: what each of its parts took, idling and beyond it, what nobody measured, what the GPUs
// took that did nothing, and what "time times power" would have said instead. Used by Summariser.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/combine.hpp"
#include "analysis/domain.hpp"
#include "model/node.hpp"
#include "model/summary.hpp"

namespace ergometer {

// Of a run of `run_s` seconds; `energies` and `idle` belong to `domains`. `rest`: node meter minus parts, if known.
[[nodiscard]] NodeAccount account_of(const Node& node, const std::vector<Domain>& domains,
                                     const std::vector<DomainEnergy>& energies, const std::vector<IdlePower>& idle,
                                     std::span<const Gauge> gauges, const std::optional<Estimate>& rest, double run_s);

// Powers that a time is multiplied with: sums over the domains in the total, unset if one of them has none.
struct ShortcutRates {
  std::optional<double> tdp_w, mean_power_w;
  void add(const ShortcutRates& other);
  [[nodiscard]] Shortcuts over(double duration_s) const;
};
[[nodiscard]] ShortcutRates shortcut_rates(const NodeAccount& account, const std::vector<DomainEnergy>& energies);

}  // namespace ergometer
