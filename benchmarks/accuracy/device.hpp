// Device: a simulated piece of hardware that is read as its profile says. What the profile leaves open within its
// tolerance (gain, offset, phase, the mapping of its clock) is drawn anew for each device. Used by the accuracy
// program.
#pragma once

#include <vector>

#include "accuracy/load.hpp"
#include "model/node.hpp"
#include "model/trace.hpp"

namespace ergometer::accuracy {

// One channel as a backend declares it, and how the tool reads it.
struct Reading {
  Channel channel;
  double interval_s = 0.1;
  bool own_time = false;
};

struct Case {
  std::string name;  // of the profile
  std::string interface;
  Node node;  // names the device
  std::vector<Reading> readings;
  double low_w = 80, high_w = 700;
};

// A case for each built-in profile of a device, its channels completed by the profiles.
std::vector<Case> cases();

struct Drawn {
  double gain = 1, offset_w = 0, mapping_s = 0;
};
Drawn draw(const Case& device, Random& random);

struct Rhythm {
  bool exact = false;     // the update period is exactly the nominal one, without jitter
  double low_pass_s = 0;  // above 0: samples are a low-pass of this time instead of the window
};
// What the tool records from `begin` to `end` seconds.
std::vector<Trace> record(const Case& device, const Drawn& drawn, const Load& load, double begin, double end,
                          Random& random, const Rhythm& rhythm = {});

}  // namespace ergometer::accuracy
