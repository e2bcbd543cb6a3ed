// The sum recipe: which domains of a node enter its total, so that nothing is counted twice, and what is odd about
// them. Used by Summariser.
#pragma once

#include <string>
#include <vector>

#include "analysis/arithmetic.hpp"
#include "analysis/domain.hpp"
#include "model/node.hpp"
#include "model/summary.hpp"

namespace ergometer {

// Sets counted, expected, visible and note of every domain, by the tree of scopes (model/channel.hpp) and the GPUs that
// the command can use; adds a domain without channels for every GPU that the node lists and no sensor measures.
// A module contains the package, dram and gpu of its number; core, uncore and memory are inside others; psys and node
// meters are shown apart, unless one is the only measured energy.
void decide_totals(const Node& node, std::vector<Domain>& domains);

// Sum over domains of one line.
struct Total {
  std::optional<double> energy_j, uncertainty_j, modelled_j;
  double clock_j = 0;   // part of uncertainty_j that is alike in all domains and nodes (UncertaintyParts)
  double coverage = 0;  // lowest of the domains inside
  std::size_t inside = 0, expected = 0;
};
[[nodiscard]] Total total_of(const std::vector<Domain>& domains, const std::vector<DomainEnergy>& energies);
// Totals of several nodes added: independent but for what clocks are off.
void add_total(Total& sum, const Total& other);

// The run's energy of everything in the machine (its total and the GPUs that the command could not use), if there are
// such GPUs.
[[nodiscard]] std::optional<double> machine_energy(const std::vector<Domain>& domains,
                                                   const std::vector<DomainEnergy>&);

// The node meter whose energy the parts are held against; null without one that covers the run.
[[nodiscard]] const DomainEnergy* node_meter(const std::vector<Domain>& domains, const std::vector<DomainEnergy>&);
// Whether a domain is one of the parts that add up to the node: in the total, or a GPU that the command cannot use.
[[nodiscard]] bool is_part(const Domain& domain, const DomainEnergy& energy);

// Node meter minus its parts; unset without a meter or when the parts are above it (then with a warning).
[[nodiscard]] std::optional<Estimate> unexplained(const std::string& node, const std::vector<Domain>& domains,
                                                  const std::vector<DomainEnergy>& energies,
                                                  std::vector<Warning>& warnings);

}  // namespace ergometer
