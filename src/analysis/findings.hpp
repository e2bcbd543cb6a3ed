// Findings: what a user must know about a summary, as warnings with remedies. Used by Summariser.
#pragma once

#include <string>
#include <vector>

#include "analysis/domain.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"
#include "model/summary.hpp"
#include "model/trace.hpp"

namespace ergometer {

// What is covered less is said to be partial.
inline constexpr double kFullCoverage = 0.99;

// About one domain of a run: gaps, resets, ambiguous steps, methods that disagree, an odd sensor.
void find_domain_findings(const Domain& domain, const DomainEnergy& energy, std::vector<Warning>& out);
// Events that change what the numbers mean (lost, suspend, clock, rejected, stuck), one warning a kind and source.
void find_event_findings(const std::string& node, const std::vector<Event>& events, std::vector<Warning>& out);
// The counters of a processor that may not be read, unless the manifest says so already.
void find_absences(const Node& node, const std::vector<Domain>& domains, const Manifest& manifest,
                   std::vector<Warning>& out);
// What the total lacks. `inside` of `expected` devices are in it throughout if `coverage` is 1.
void find_total_findings(const Summary& summary, std::size_t inside, std::size_t expected, double coverage,
                         std::vector<Warning>& out);

}  // namespace ergometer
