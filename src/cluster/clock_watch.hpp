// ClockWatch: how this node's CLOCK_MONOTONIC lies against that of the run's reference node, asked at the start, each
// minute and at the end, on a thread of its own while the command runs. Used by the process that measures a node.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "cluster/machine.hpp"
#include "model/place.hpp"
#include "model/warning.hpp"

namespace ergometer {

class ClockWatch {
 public:
  struct Where {
    std::filesystem::path run;  // holds clock.json and nodes/REFERENCE/part.json, both the reference's
    std::string reference;      // its folder below nodes/
    std::string machine_clock;  // Machine::clock() of this node
  };

  // Starts the thread, with every signal blocked in it. `take` is called on it with all that is known so far.
  ClockWatch(Where place, std::shared_ptr<Clock> clock, std::function<void(const ClockLink&)> take);
  ~ClockWatch();
  ClockWatch(const ClockWatch&) = delete;
  ClockWatch& operator=(const ClockWatch&) = delete;

  struct Outcome {
    ClockLink link;
    std::vector<Warning> warnings;
  };
  // Asks once more, waits at most 1 s for the answer and ends the thread. Where the reference was never reached the
  // link is by the wall clocks of both nodes, with the bounds that their kernels give (16 s each for a clock that
  // nothing disciplines: NTP_PHASE_LIMIT), or without offsets if the reference recorded none; the warnings say so.
  [[nodiscard]] Outcome stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergometer
