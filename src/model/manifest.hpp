// Manifest: one run's identity, command, times and end; run.json in memory, and part.json of a run over several nodes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "model/place.hpp"
#include "model/warning.hpp"

namespace ergometer {

// The same moment on both clocks.
struct ClockPair {
  MonoTime mono;
  WallTime wall;
  // The wall clock is that far from UTC at most, as the kernel believes (maxerror of adjtimex; it says so only where
  // something disciplines the clock).
  std::optional<Nanos> error{};
};

struct Interval {
  MonoTime begin, end;
  [[nodiscard]] Nanos duration() const { return end - begin; }
};

// What measuring itself cost.
struct Overhead {
  double cpu_s = 0;                     // user + system CPU time of the tool itself
  std::optional<double> max_rss_bytes;
};

struct Manifest {
  std::string name;
  std::vector<std::string> command;                 // argv; empty for a measurement from code
  std::string directory;                            // working directory
  std::map<std::string, std::string> environment;   // only variables that decide what runs where (CUDA_*, OMP_*, ...)
  std::string tool_version;
  // "running" until the tool ends it; "complete" after an orderly end; a "running" run whose tool is gone was cut.
  std::string state = "running";
  std::vector<ClockPair> clocks;                    // at start, at intervals, at the end
  std::optional<Interval> idle_before, idle_after;
  std::optional<MonoTime> begin;                    // the command was started
  std::optional<MonoTime> end;                      // the command had ended
  std::optional<int> exit_code;                     // as the shell sees it: 128 + N after signal N
  std::optional<int> signal;                        // the signal that ended the command
  // The nodes' folders; of a run that several machines write: the names that its launcher gave, one of which may be an
  // alias.
  std::vector<std::string> nodes;
  std::vector<Warning> warnings;
  std::optional<Overhead> overhead;
  std::optional<Parts> parts;      // in run.json of a run that several machines write; it is written once
  std::optional<Place> place;      // in part.json
  std::vector<RankEnd> ranks;      // by rank; in part.json those of its machine
  std::optional<ClockLink> clock;  // in part.json
};

}  // namespace ergometer
