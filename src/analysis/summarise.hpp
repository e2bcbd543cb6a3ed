// Summariser: from a run's rows and regions to its Summary. Pure: no files, no clock. Feed the node (with its regions)
// first, then its traces one by one in any order; each trace may be dropped after its call, so that a day of eight GPUs
// needs the memory of one sensor.
#pragma once

#include <memory>
#include <string>
#include <vector>

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
  // Thread-safe: traces may be added from several threads.
  void add_trace(const std::string& node, const Trace& trace);
  // Chooses methods, totals, uncertainty and warnings. Call once.
  [[nodiscard]] Summary finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergometer
