// Domain: one part of one machine with all channels that tell its energy; picks the best of them for each line. Used
// by Summariser and by the total's rules (totals.hpp).
#pragma once

#include <string>
#include <vector>

#include "analysis/candidate.hpp"
#include "model/node.hpp"
#include "model/summary.hpp"

namespace ergometer {

struct Domain {
  std::string name;  // "gpu/0"
  Scope scope = Scope::node;
  std::string device;
  std::vector<Candidate> candidates;
  // Set by judge() and by the total's rules.
  bool claims_total = false;  // a measured channel of it says that it belongs in totals
  bool counted = false;       // added to totals
  bool expected = true;       // the total is partial without it
  bool visible = true;        // false: a GPU that the command could not use
  std::string note;
  std::vector<Warning> warnings;

  // Between these the domain's power lies, as far as its measured channels and its maximum tell.
  double lowest_w = 0, highest_w = 0, highest_read_w = 0;

  // How far a candidate is trusted; the best grade that has a value is used. What is stuck has no value.
  enum Grade { trusted, duplicate, doubtful, modelled, stuck };
  std::vector<Grade> grades;  // one a candidate
};

// Orders candidates and grades them by what the whole run shows: a counter that never moves though it must, a power
// beyond what the part can draw, a mirror. Fills the holes of counters from the domain's power channel.
void judge(Domain& domain, const Rows& rows);

// The domain's energy on one line, from the candidate with the most coverage and, among equals, the smallest
// uncertainty. `duration_s` is the line's length, `single` the share of
// it that one of its regions has on average.
// `low_confidence` is set (never reset) if the line is shorter than the chosen channel resolves.
[[nodiscard]] DomainEnergy energy_of(const Domain& domain, std::uint32_t row, double duration_s, double single = 1.0,
                                     bool* low_confidence = nullptr);

// Most power in watts that is believed of a domain over a whole run, or nullopt for what has no bound.
[[nodiscard]] std::optional<double> plausible_power(const Channel& channel);

}  // namespace ergometer
