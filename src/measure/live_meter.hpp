// LiveMeter: power and energy so far by domain, updated row by row, for the live line of a run. A rough figure by
// design: the summary at the end comes from the recorded rows. Used by Session.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/session.hpp"
#include "model/node.hpp"
#include "model/trace.hpp"

namespace ergometer {

class LiveMeter {
 public:
  LiveMeter();
  ~LiveMeter();
  // Takes in the sensors of `node` that are new since the last call: of them the channels that give energy of the
  // domains in the total, that is the outermost measured scopes, and of the GPUs those that the command can use. Any
  // thread.
  void extend(const Node& node);
  // Rows of node.sensors[sensor]. Any thread; cheap.
  void add(std::size_t sensor, std::span<const Row> rows);
  // Energy counts from here on.
  void restart();
  // Fills domains and energy_j of `view`. A power older than `now` by more than max(2 s, 5 intervals) is unknown.
  void fill(LiveView& view, MonoTime now) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergometer
