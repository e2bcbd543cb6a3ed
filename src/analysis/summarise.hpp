// Summariser: from a run's rows and regions to its Summary. Pure: no files, no clock. Feed all nodes (with their
// regions) first, then traces one by one in any order; each trace may be dropped after its call, so that a day of eight
// GPUs needs the memory of one sensor, and ten thousand nodes that of the few whose traces are coming in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/clock_map.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"
#include "model/region.hpp"
#include "model/summary.hpp"
#include "model/trace.hpp"

namespace ergometer {

class Summariser {
 public:
  explicit Summariser(const Manifest& manifest);
  ~Summariser();
  void add_node(const Node& node, std::vector<Region> regions, const std::vector<Event>& events);
  // A node with a part of its own: `part` says when its command ran and its idle phases were, `clock` how well its time
  // is known in the run's. Everything is given in the run's time.
  void add_part(const Node& node, const Manifest& part, ClockMap clock, std::vector<Region> regions,
                const std::vector<Event>& events);
  // Thread-safe: traces may be added from several threads.
  void add_trace(const std::string& node, const Trace& trace);
  // No more traces of this node will come: what is known of it is settled and its readings forgotten, if its part says
  // when it began and ended. Thread-safe.
  void finish_node(const std::string& node);
  // Chooses methods, totals, uncertainty and warnings. Call once.
  [[nodiscard]] Summary finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergometer
