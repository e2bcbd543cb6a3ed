// Sums, differences and means of energies whose errors are partly the same: what one device gets wrong by a factor it
// gets wrong everywhere. Used by Summariser and by whatever compares regions or runs.
#pragma once

#include <vector>

#include "analysis/arithmetic.hpp"
#include "analysis/domain.hpp"
#include "model/summary.hpp"

namespace ergometer {

// Half-width of a combination of parts that is one domain's.
[[nodiscard]] double half_width(const UncertaintyParts& parts);

// a - b, over the domains in the total that both have: decode = generate - prefill, one run against another. The gain
// acts on the difference of the energies and the offset on that of the times if both are of the `same_devices`; else
// on each. Unset if no domain is in both.
[[nodiscard]] std::optional<Estimate> difference(const std::vector<DomainEnergy>& a, double a_s,
                                                 const std::vector<DomainEnergy>& b, double b_s,
                                                 bool same_devices = true);

// value / amount of an exact amount (samples, tokens).
[[nodiscard]] Estimate per(const Estimate& energy, double amount);
// a / b of independent values, to first order.
[[nodiscard]] Estimate ratio(const Estimate& a, const Estimate& b);

// Mean power of one domain in the idle phases.
struct IdlePower {
  double power_w = 0;
  double random_w = 0;  // 95 % half-width with drift, without what the device gets wrong throughout
  bool known = false;
};

// Energy minus idle power times duration, over the domains in the total; `idle` has one entry a domain. Unset if the
// idle power of one of them is not known.
[[nodiscard]] std::optional<Estimate> net_energy(const std::vector<DomainEnergy>& energies,
                                                 const std::vector<IdlePower>& idle, double duration_s);

// One row a family of regions of which one at least is shorter than the sensors resolve: the mean energy of one, with
// random errors averaged and the others kept. `locked`: families whose random errors repeat.
[[nodiscard]] std::vector<PooledRegions> pool_short(const Rows& rows, const std::vector<RegionEnergy>& regions,
                                                    const std::vector<std::string>& locked);

}  // namespace ergometer
