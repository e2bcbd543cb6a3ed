#include "analysis/combine.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/arithmetic.hpp"

namespace ergometer {
namespace {

bool counts(const DomainEnergy& e) { return e.energy_j && e.measured && e.in_total; }

double share_of(double part_j, double of_j) { return of_j > 0 ? part_j / of_j : 0; }

}  // namespace

double half_width(const UncertaintyParts& p) {
  return std::sqrt(square(p.random_j) + square(p.hidden_j) + square(p.gain_j) + square(p.offset_j) + square(p.clock_j));
}

std::optional<Estimate> difference(const std::vector<DomainEnergy>& a, double a_s, const std::vector<DomainEnergy>& b,
                                   double b_s, bool same_devices) {
  std::optional<Estimate> out;
  double variance = 0;
  for (const auto& x : a) {
    const auto y = std::find_if(b.begin(), b.end(),
                                [&](const DomainEnergy& e) { return e.domain == x.domain && e.scope == x.scope; });
    if (!counts(x) || y == b.end() || !counts(*y)) continue;
    if (!out) out = Estimate{};
    out->value += *x.energy_j - *y->energy_j;
    variance += square(x.parts.random_j) + square(y->parts.random_j) + square(x.parts.hidden_j) +
                square(y->parts.hidden_j) + square(x.parts.clock_j) + square(y->parts.clock_j);
    if (same_devices) {
      const double gain = std::max(share_of(x.parts.gain_j, *x.energy_j), share_of(y->parts.gain_j, *y->energy_j));
      const double offset = std::max(share_of(x.parts.offset_j, a_s), share_of(y->parts.offset_j, b_s));
      variance += square(gain * (*x.energy_j - *y->energy_j)) + square(offset * (a_s - b_s));
    } else {
      variance +=
          square(x.parts.gain_j) + square(y->parts.gain_j) + square(x.parts.offset_j) + square(y->parts.offset_j);
    }
  }
  if (out) out->uncertainty = std::sqrt(variance);
  return out;
}

Estimate per(const Estimate& energy, double amount) { return {energy.value / amount, energy.uncertainty / amount}; }

Estimate ratio(const Estimate& a, const Estimate& b) {
  const double value = a.value / b.value;
  return {value, std::abs(value) * std::hypot(a.uncertainty / a.value, b.uncertainty / b.value)};
}

std::optional<Estimate> net_energy(const std::vector<DomainEnergy>& energies, const std::vector<IdlePower>& idle,
                                   double duration_s) {
  // What the same devices would have drawn idling, with the same gain and offset.
  std::vector<DomainEnergy> idling = energies;
  for (std::size_t i = 0; i < energies.size(); ++i) {
    if (!counts(energies[i])) continue;
    if (!idle[i].known) return std::nullopt;
    auto& e = idling[i];
    e.energy_j = idle[i].power_w * duration_s;
    e.parts.random_j = idle[i].random_w * duration_s;
    e.parts.hidden_j = e.parts.clock_j = 0;
    e.parts.gain_j = share_of(energies[i].parts.gain_j, *energies[i].energy_j) * *e.energy_j;
  }
  return difference(energies, duration_s, idling, duration_s);
}

std::vector<PooledRegions> pool_short(const Rows& rows, const std::vector<RegionEnergy>& regions,
                                      const std::vector<std::string>& locked) {
  struct Sums {
    double random2 = 0, random = 0, hidden = 0, gain = 0, offset = 0, clock = 0;
  };
  struct Family {
    PooledRegions out;
    std::map<std::string, Sums> domains;
    bool is_short = false, whole = true;
  };
  std::map<std::string, Family> families;
  for (std::size_t line = 0; line < regions.size(); ++line) {
    const auto& r = regions[line];
    auto& family = families[rows.regions[rows.lines[line].members.front()].family()];
    family.is_short |= r.low_confidence;
    family.whole &= r.energy_j.has_value();
    family.out.count += r.count;
    family.out.mean_duration_s += r.duration_s;
    family.out.mean_energy_j += r.energy_j.value_or(0);
    for (const auto& e : r.domains) {
      if (!counts(e)) continue;
      auto& sums = family.domains[e.domain];
      sums.random2 += square(e.parts.random_j);
      sums.random += e.parts.random_j;
      sums.hidden += e.parts.hidden_j;
      sums.gain += e.parts.gain_j;
      sums.offset += e.parts.offset_j;
      sums.clock += e.parts.clock_j;
    }
  }
  std::vector<PooledRegions> out;
  for (auto& [path, family] : families) {
    if (!family.is_short || !family.whole || family.out.count < 2) continue;
    const bool repeats = std::find(locked.begin(), locked.end(), path) != locked.end();
    double variance = 0;
    for (const auto& [domain, s] : family.domains)
      variance += (repeats ? square(s.random) : s.random2) + square(s.hidden) + square(s.gain) + square(s.offset) +
                  square(s.clock);
    const auto n = static_cast<double>(family.out.count);
    family.out.path = path;
    family.out.mean_duration_s /= n;
    family.out.mean_energy_j /= n;
    family.out.uncertainty_j = std::sqrt(variance) / n;
    out.push_back(family.out);
  }
  return out;
}

}  // namespace ergometer
