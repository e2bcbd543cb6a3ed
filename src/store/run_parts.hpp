// The parts of a run that several machines wrote: reads each nodes/NODE/part.json, finds how the nodes' clocks lie
// against one of them, and makes one manifest of all. Used by RunReader and by ergometer merge.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/clock_map.hpp"
#include "model/manifest.hpp"
#include "model/warning.hpp"

namespace ergometer {

struct RunPart {
  Manifest manifest;     // all times moved to the reference node's clock
  ClockMap clock;        // from the node's own clock to the reference's
  bool by_wall = false;  // that is all that the wall clocks tell
};

struct RunParts {
  std::map<std::string, RunPart> by_node;  // by the node's folder; nodes without part.json are not among them
  std::vector<std::string> left_out;       // folders of machines that have another part over the same time
  std::string reference;                   // whose clock the times are of
};

// A node's folder below RUN/nodes and its part.json, in its own time.
struct RawPart {
  std::string folder;
  Manifest manifest;
};

// The parts of the folders `nodes` of RUN that have one; a damaged one is a warning and counts as not there.
[[nodiscard]] std::vector<RawPart> read_raw_parts(const std::filesystem::path& dir,
                                                  const std::vector<std::string>& nodes,
                                                  std::vector<Warning>& warnings);

// Which of the parts to leave out (indices): of two parts of one machine over the same time the one that recorded
// longer is kept, so that a machine is measured once. The one kept gets the other's names as aliases, and each pair is
// a warning.
[[nodiscard]] std::vector<std::size_t> find_twins(std::vector<RawPart>& parts, std::vector<Warning>& warnings);

// Which node's clock the others are told in: what run.json says, else whom most parts refer to, else the first.
[[nodiscard]] std::string choose_reference(const Manifest& run, const std::vector<RawPart>& parts);

// How `part`'s clock lies against that of `reference`, by what it measured itself or, failing that, by the boot id or
// both wall clocks. `there` is the reference's part, if it is there. Method::same: one clock. nullopt: nothing tells.
[[nodiscard]] std::optional<ClockLink> link_of(const RawPart& part, const std::string& reference, const RawPart* there);

// Moves every part to the reference's clock and completes `run`: times, ends of all ranks, state, exit code, overhead,
// clocks, warnings, and in Parts::missing who is not there. What had to be guessed or left out is in `warnings`.
[[nodiscard]] RunParts join_parts(std::vector<RawPart> parts, Manifest& run, std::vector<Warning>& warnings);

}  // namespace ergometer
