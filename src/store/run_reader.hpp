// RunReader: reads a run directory, also a running, cut, damaged or hand-written one. Of a run that several machines
// wrote everything is given in the time of one of them, the reference. Used by the command line.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"
#include "model/region.hpp"
#include "model/trace.hpp"
#include "store/run_parts.hpp"

namespace ergometer {

class RunReader {
 public:
  // Errors: no such folder; no run.json or one that is empty, foreign or damaged (named, with what is expected).
  // A missing or damaged node.json is a warning; its sample files are still read with channels inferred from column
  // names.
  [[nodiscard]] static Result<RunReader> open(const std::filesystem::path& dir);

  [[nodiscard]] const std::filesystem::path& dir() const { return dir_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  // Whether the nodes have parts of their own.
  [[nodiscard]] bool has_parts() const { return !parts_.by_node.empty(); }
  // Of a run that several machines wrote: what the node's own part says, in the reference's time. Else the run's
  // manifest.
  [[nodiscard]] const Manifest& part(const std::string& node) const;
  // From the node's clock to the reference's.
  [[nodiscard]] ClockMap clock(const std::string& node) const;
  // Damage found so far, by open and by the reads below.
  [[nodiscard]] const std::vector<Warning>& warnings() const { return warnings_; }

  // Names of the sensors of a node that have a sample file. An empty file counts as none.
  [[nodiscard]] std::vector<std::string> sensors(const std::string& node) const;
  // All rows of one sensor in time order. A frame that is damaged or cut is left out and becomes a warning and, through
  // its missing rows, a gap; the other frames are kept. Safe to call from several threads if `damage` is given, which
  // then receives the warnings instead of warnings().
  [[nodiscard]] Result<Trace> samples(const std::string& node, const std::string& sensor,
                                      std::vector<Warning>* damage = nullptr) const;
  // regions.csv or, where a run that has not ended has none yet, the marker files, with paths resolved; by begin time.
  // Regions that are open in such a run end with its last sample.
  [[nodiscard]] Result<std::vector<Region>> regions(const std::string& node);
  // By time.
  [[nodiscard]] Result<std::vector<Event>> events(const std::string& node);

 private:
  void read_nodes();
  void read_node(const std::string& folder);
  [[nodiscard]] const Node* find(const std::string& node) const;
  [[nodiscard]] const RunPart* find_part(const std::string& node) const;
  [[nodiscard]] std::filesystem::path folder(const std::string& node) const;
  [[nodiscard]] MonoTime last_moment(const std::string& node);

  std::filesystem::path dir_;
  Manifest manifest_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::size_t> index_;  // by name into nodes_
  RunParts parts_;
  mutable std::vector<Warning> warnings_;  // samples() is const, so that threads can share a reader
};

}  // namespace ergometer
