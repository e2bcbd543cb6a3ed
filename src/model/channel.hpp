// Channel: what one recorded number means. Stored once a run in node.json; the numbers stand in the sample files.
// Plain values, used by device (which declares them), store (which keeps them) and analysis (which reads them).
#pragma once

#include <optional>
#include <string>

#include "base/units.hpp"

namespace ergometer {

enum class Quantity { power, energy, ratio, bytes, frequency, temperature, duration, count };

// A counter only grows (until it wraps at `range` or is reset); a gauge is a momentary or averaged level.
enum class Behaviour { counter, gauge };

// Which part of the machine a number is about. For energy and power, scopes form a tree: a node contains modules,
// psys, packages, dram and gpus; a module contains its gpu; a package contains core and uncore; a gpu contains its
// memory. `tree` and `system` mark resource channels (CPU time, bytes) of the measured process tree and of the node.
enum class Scope { node, module, psys, package, core, uncore, dram, gpu, memory, rail, tree, system };

// How energy follows from a power or energy channel.
enum class Method {
  samples,   // power from the device's own dense sample buffer, integrated over the device's time stamps
  counter,   // differences of an energy counter
  integral,  // momentary power, integrated
  average,   // power that the device averages over `window`, integrated
  model,     // estimated, not measured
};

struct Channel {
  std::string column;  // column name with its unit suffix, unique in its sensor: "power_w"
  Quantity quantity = Quantity::count;
  std::string unit;  // "W", "J", "1", "B", "Hz", "Cel", "s", "" for a plain count
  Behaviour behaviour = Behaviour::gauge;
  std::string domain;  // "gpu/0", "package/0", "dram/0", "psys/0", "node", "tree", "system"
  std::string device;  // GPU UUID, or the name of the chip, zone or file
  Scope scope = Scope::system;
  std::optional<Method> method;  // set for power and energy channels that can give energy; else unset
  bool measured = true;          // false: a model's estimate
  // false: recorded for cross-checking only, never part of a total (a duplicate, an unknown zone, a mirror).
  bool in_total = true;
  std::optional<double> range;        // counters: the value at which it wraps, in `unit`; unset: does not wrap
  std::optional<Nanos> period;        // time between updates in the device, if known
  std::optional<Nanos> window;        // averaging window, if known
  std::optional<double> resolution;   // smallest step, in `unit`
  std::optional<double> max_power_w;  // plausibility bound of the domain, if known
  // What is known of the device's readings, from profiles/ or a calibration (docs/method.md). Recorded readings stay as
  // the device gave them; analysis applies gain and offset.
  std::optional<Nanos> delay;                // a reading shows the power of this much earlier
  std::optional<double> sampled_share;       // part of each period that the device looks at, above 0, at most 1
  std::optional<double> gain, offset_w;      // true power = gain * reading + offset_w
  std::optional<double> gain_tolerance;      // 95 % half-width of the gain, relative
  std::optional<double> offset_tolerance_w;  // 95 % half-width of the offset
  std::string profile;                       // name and source of these values; "" if none
  std::string note;                          // source, caveat, or why it is not in the total
};

// Words used in files. from_* return nullopt for an unknown word.
[[nodiscard]] const char* to_word(Quantity);
[[nodiscard]] const char* to_word(Behaviour);
[[nodiscard]] const char* to_word(Scope);
[[nodiscard]] const char* to_word(Method);
[[nodiscard]] std::optional<Quantity> quantity_from(std::string_view);
[[nodiscard]] std::optional<Behaviour> behaviour_from(std::string_view);
[[nodiscard]] std::optional<Scope> scope_from(std::string_view);
[[nodiscard]] std::optional<Method> method_from(std::string_view);

}  // namespace ergometer
