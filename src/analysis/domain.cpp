#include "analysis/domain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "analysis/anchor.hpp"
#include "analysis/arithmetic.hpp"

namespace ergometer {
namespace {

constexpr double kModelShare = 0.6;      // half-width of an estimate, as a share of it
constexpr double kSnapshotShare = 0.05;  // likewise, of power channels of which no gain tolerance is known
constexpr double kHidden = 0.15;         // of the widest variation within a reading that its mean allows
constexpr double kLeastHidden = 0.35;    // of the range read: at its ends the mean seems to allow none
constexpr double kSlower = 1.5;          // readings so much longer than others are not as good
constexpr double kSameCoverage = 0.01;   // coverages this close are equal
constexpr std::size_t kStuckReadings = 10;
constexpr double kStuckSeconds = 1.0;

// One candidate's answer on one line.
struct Answer {
  const Candidate* candidate = nullptr;
  Domain::Grade grade = Domain::trusted;
  double energy_j = 0, coverage = 0, variance = 0, filled_j = 0;
  double excess_j = 0;  // part of the variance: what the domain's counter says against it
  UncertaintyParts parts;
  Share share;
};

// 95 % half-width of the gain.
double gain_share(const Channel& channel) {
  if (channel.measured && channel.gain_tolerance) return *channel.gain_tolerance;
  switch (*channel.method) {
    case Method::model:
      return kModelShare;
    case Method::integral:
    case Method::average:
      return kSnapshotShare;
    case Method::samples:
    case Method::counter:
      break;
  }
  return 0;
}

// What may change faster than the readings show, as a 95 % half-width. Of all loads between the lowest and the highest
// power with this mean, the one that only knows these two varies most: by (mean - lowest) (highest - mean). A share of
// that is what loads do (docs/method.md).
double hidden_j(const Domain& domain, const Share& share) {
  const double level = share.amount / share.covered_s;
  const double widest = std::max((level - domain.lowest_w) * (domain.highest_w - level),
                                 square(kLeastHidden * (domain.highest_read_w - domain.lowest_w)));
  return 1.96 * kHidden * std::sqrt(widest) * share.blind_s;
}

void find_range(Domain& domain) {
  std::optional<double> low, high;
  for (const auto& c : domain.candidates) {
    if (!c.channel.measured || !c.lowest_w) continue;
    low = std::min(low.value_or(*c.lowest_w), *c.lowest_w);
    domain.highest_read_w = std::max(domain.highest_read_w, *c.highest_w);
    high = std::max({high.value_or(0), *c.highest_w, c.channel.max_power_w.value_or(0)});
  }
  domain.lowest_w = low.value_or(0);
  domain.highest_w = high.value_or(0);
}

// What the domain's best power channel says about the holes of its counters, line by line.
void fill_holes(Domain& domain, const Rows& rows) {
  const Candidate* source = nullptr;
  for (std::size_t i = 0; i < domain.candidates.size(); ++i) {
    const Candidate& c = domain.candidates[i];
    if (c.channel.behaviour != Behaviour::gauge || c.outline.t.size() < 2 || domain.grades[i] > Domain::duplicate)
      continue;
    if (!source || c.channel.method < source->channel.method) source = &c;
  }
  if (!source) return;
  for (auto& c : domain.candidates) {
    if (c.channel.behaviour != Behaviour::counter || c.holes.empty()) continue;
    c.fills.resize(rows.size());
    for (const auto& piece : rows.pieces) {
      auto hole = std::upper_bound(c.holes.begin(), c.holes.end(), piece.begin,
                                   [](std::int64_t t, const Hole& h) { return t < h.end_ns; });
      for (; hole != c.holes.end() && hole->begin_ns < piece.end; ++hole)
        c.fills[piece.row].add(
            source->outline.between(std::max(hole->begin_ns, piece.begin), std::min(hole->end_ns, piece.end)));
    }
    // The outline keeps no variance; as for any coarse power, a fixed share.
    for (auto& fill : c.fills) fill.variance = std::pow(kSnapshotShare * fill.amount, 2);
  }
}

// Counters that are read seldom take the shape between their readings from the closest power channel.
void anchor_counters(Domain& domain, const Rows& rows) {
  for (std::size_t i = 0; i < domain.candidates.size(); ++i) {
    Candidate& counter = domain.candidates[i];
    if (domain.grades[i] != Domain::trusted || counter.channel.behaviour != Behaviour::counter) continue;
    const Candidate* shape = nullptr;
    for (std::size_t k = 0; k < domain.candidates.size(); ++k) {
      const Candidate& gauge = domain.candidates[k];
      if (domain.grades[k] != Domain::trusted || !can_anchor(counter, gauge)) continue;
      if (!shape || gauge.blind_ns < shape->blind_ns) shape = &gauge;
    }
    if (shape) anchor(counter, *shape, rows);
  }
}

// A power channel that misses time cannot see by itself that it always looks at the same moments of a load: its
// readings are steady and promise much. The counter of the same shunts tells.
void find_contradictions(Domain& domain) {
  for (std::size_t i = 0; i < domain.candidates.size(); ++i) {
    const Candidate& counter = domain.candidates[i];
    const Share& truth = counter.shares[kRunRow];
    if (domain.grades[i] != Domain::trusted || counter.channel.behaviour != Behaviour::counter || truth.amount <= 0)
      continue;
    for (auto& gauge : domain.candidates) {
      const Share& share = gauge.shares[kRunRow];
      if (gauge.channel.behaviour != Behaviour::gauge || !gauge.channel.measured || share.covered_s <= 0) continue;
      if (std::abs(share.covered_s - truth.covered_s) > kSameCoverage * truth.covered_s) continue;
      const double apart = std::abs(share.amount - truth.amount) / truth.amount;
      const double allowed = std::sqrt(share.variance + truth.variance) / truth.amount;
      if (apart > allowed) gauge.contradicted = apart;
      if (gauge.channel.in_total && can_anchor(counter, gauge))
        gauge.contradicted = std::max(gauge.contradicted, contradiction(counter, gauge));
    }
  }
}

std::optional<Answer> answer_of(const Domain& domain, std::size_t i, std::uint32_t row, double duration_s) {
  const Candidate& c = domain.candidates[i];
  Answer a;
  a.candidate = &c;
  a.grade = domain.grades[i];
  a.share = c.shares[row];
  Share total = a.share;
  if (!c.fills.empty()) {
    a.filled_j = c.fills[row].amount;
    total.add(c.fills[row]);
  }
  if (total.covered_s <= 0 || duration_s <= 0) return std::nullopt;
  a.energy_j = total.amount;
  a.coverage = std::min(1.0, total.covered_s / duration_s);
  a.share.covered_s = total.covered_s;
  a.parts = {std::sqrt(total.variance), hidden_j(domain, total), gain_share(c.channel) * total.amount,
             c.channel.offset_tolerance_w.value_or(0.0) * total.covered_s, total.clock};
  a.excess_j = c.contradicted * total.amount;
  a.parts.hidden_j = std::hypot(a.parts.hidden_j, a.excess_j);
  a.variance = total.variance + square(a.parts.hidden_j) + square(a.parts.gain_j) + square(a.parts.offset_j) +
               square(a.parts.clock_j);
  return a;
}

// A counter that has not moved within an interval shorter than its period seems to say "no energy, for certain". What
// may be hidden in one period is told by the domain's other channels: their mean power for one period at each edge.
void widen_stale_counters(std::vector<Answer>& answers) {
  double power_w = 0;
  for (const auto& a : answers)
    if (a.candidate->channel.measured && a.share.covered_s > 0)
      power_w = std::max(power_w, a.energy_j / a.share.covered_s);
  for (auto& a : answers) {
    if (a.candidate->channel.behaviour != Behaviour::counter || a.candidate->anchored) continue;
    const double hidden_j = power_w * static_cast<double>(a.candidate->resolves_ns) / 1e9;
    const double missing = 2 * hidden_j * hidden_j - a.variance;
    if (missing <= 0) continue;
    a.variance += missing;
    a.parts.hidden_j = std::sqrt(square(a.parts.hidden_j) + missing);
  }
}

// `length_s` is that of one region.
bool better(const Answer& a, const Answer& b, double length_s) {
  if (a.grade != b.grade) return a.grade < b.grade;
  if (std::abs(a.coverage - b.coverage) > kSameCoverage) return a.coverage > b.coverage;
  // What an interval shorter than a reading seems to be is a guess, however steady the readings are.
  const double a_s = seconds(Nanos(a.candidate->blind_ns)), b_s = seconds(Nanos(b.candidate->blind_ns));
  if (length_s < std::max(a_s, b_s) &&
      (length_s >= a_s || length_s >= b_s || a_s > kSlower * b_s || b_s > kSlower * a_s))
    return a_s < b_s;
  if (a.variance != b.variance) return a.variance < b.variance;
  return *a.candidate->channel.method < *b.candidate->channel.method;
}

bool is_stuck(const Domain& domain, const Candidate& c) {
  const Share& run = c.shares[kRunRow];
  if (c.channel.behaviour != Behaviour::counter || c.readings < kStuckReadings || run.covered_s < kStuckSeconds ||
      run.amount > 0)
    return false;
  // A processor that runs this program draws power, and so does what contains it.
  if (domain.scope == Scope::package || domain.scope == Scope::psys || domain.scope == Scope::module ||
      domain.scope == Scope::node)
    return true;
  return std::any_of(domain.candidates.begin(), domain.candidates.end(), [](const Candidate& other) {
    const Share& s = other.shares[kRunRow];
    return other.channel.measured && s.covered_s > 0 && s.amount > s.covered_s;  // more than 1 W
  });
}

Domain::Grade grade_of(Domain& domain, const Candidate& c) {
  if (!c.channel.measured) return Domain::modelled;
  if (is_stuck(domain, c)) {
    domain.warnings.push_back({"sensor-stuck",
                               fmt::format("the energy counter of {} (sensor {}) did not move in {} readings",
                                           domain.name, c.sensor, c.readings),
                               "its value is not used; look at the device's driver, or choose another interface with "
                               "--sensors"});
    return Domain::stuck;
  }
  const Share& run = c.shares[kRunRow];
  const auto bound = plausible_power(c.channel);
  if (bound && run.covered_s > 0 && run.amount - std::sqrt(run.variance) > *bound * run.covered_s) {
    const std::string device = c.channel.device.empty() ? c.sensor : c.channel.device;
    domain.warnings.push_back(
        {"implausible-power",
         fmt::format("{} ({}) reads {:.6g} W, above the {:.6g} W that it can plausibly draw: not in the total",
                     domain.name, device, run.amount / run.covered_s, *bound),
         "the sensor's unit is probably wrong in the kernel or firmware"});
    return Domain::doubtful;
  }
  return c.channel.in_total && c.mirror_of.empty() ? Domain::trusted : Domain::duplicate;
}

}  // namespace

std::optional<double> plausible_power(const Channel& channel) {
  if (channel.max_power_w && *channel.max_power_w > 0) return 1.5 * *channel.max_power_w;
  switch (channel.scope) {
    case Scope::package:
    case Scope::core:
    case Scope::uncore:
    case Scope::dram:
    case Scope::gpu:
    case Scope::memory:
      return 1.5 * kUnknownMaxPower;
    default:
      return std::nullopt;
  }
}

void judge(Domain& domain, const Rows& rows) {
  // Traces arrive in any order; the result must not depend on it.
  std::sort(domain.candidates.begin(), domain.candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.sensor, a.channel.column) < std::tie(b.sensor, b.channel.column);
  });
  for (const auto& c : domain.candidates) {
    domain.grades.push_back(grade_of(domain, c));
    domain.claims_total |= c.channel.measured && c.channel.in_total && c.mirror_of.empty();
    if (domain.note.empty() && !c.mirror_of.empty()) domain.note = "mirror of " + c.mirror_of;
    if (domain.note.empty()) domain.note = c.channel.note;
    if (domain.device.empty()) domain.device = c.channel.device;
  }
  find_range(domain);
  fill_holes(domain, rows);
  anchor_counters(domain, rows);
  find_contradictions(domain);
}

DomainEnergy energy_of(const Domain& domain, std::uint32_t row, double duration_s, double single,
                       bool* low_confidence) {
  DomainEnergy out;
  out.domain = domain.name;
  out.device = domain.device;
  out.scope = domain.scope;
  out.in_total = domain.counted;
  out.note = domain.note;
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < domain.candidates.size(); ++i)
    if (domain.grades[i] != Domain::stuck)
      if (auto a = answer_of(domain, i, row, duration_s)) answers.push_back(*a);
  if (answers.empty()) {
    // Without a value the method is what would have been used.
    if (!domain.candidates.empty()) {
      out.method = *domain.candidates.front().channel.method;
      out.measured = domain.candidates.front().channel.measured;
    }
    return out;
  }
  widen_stale_counters(answers);
  const Answer& best = *std::min_element(answers.begin(), answers.end(), [&](const Answer& a, const Answer& b) {
    return better(a, b, single * duration_s);
  });
  const Candidate& c = *best.candidate;
  out.method = *c.channel.method;
  out.measured = c.channel.measured;
  if (!c.channel.device.empty() && domain.scope != Scope::gpu) out.device = c.channel.device;
  out.energy_j = best.energy_j;
  out.uncertainty_j = std::sqrt(best.variance);
  out.parts = best.parts;
  out.mean_power_w = best.energy_j / best.share.covered_s;
  out.max_power_w = std::max(best.share.highest.value_or(*out.mean_power_w), 0.0);
  out.coverage = best.coverage;
  // A model is never added to what was measured.
  if (best.grade == Domain::doubtful || best.grade == Domain::modelled) out.in_total = false;
  if (best.filled_j > 0) out.filled_j = best.filled_j;
  if (best.share.bridged > 0) out.gap_j = best.share.bridged;
  if (row == kRunRow) {
    out.last_power_w = c.last_power_w;
    if (c.longest_gap_ns > 0) out.longest_gap_s = static_cast<double>(c.longest_gap_ns) / 1e9;
  }
  for (const auto& a : answers)
    if (&a != &best)
      out.alternatives.push_back({*a.candidate->channel.method, a.energy_j,
                                  std::sqrt(std::max(0.0, a.variance - square(a.excess_j))),
                                  a.energy_j - best.energy_j});
  if (low_confidence && (single * duration_s * 1e9 < static_cast<double>(c.resolves_ns) ||
                         (out.measured && *out.uncertainty_j > 0.5 * best.energy_j && best.energy_j > 0)))
    *low_confidence = true;
  return out;
}

}  // namespace ergometer
