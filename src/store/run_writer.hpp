// RunWriter: writes a run directory while it happens (docs/run-format.md). Used by measure's Session and by importers.
// Samples leave as independent zstd frames with checksums, so that a killed run stays readable.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"
#include "model/region.hpp"
#include "model/trace.hpp"

namespace ergometer {

// One sample file; made by RunWriter::open_samples.
class SampleStream {
 public:
  ~SampleStream();
  SampleStream(const SampleStream&) = delete;
  SampleStream& operator=(const SampleStream&) = delete;
  // Copies rows into memory as text (about 0.1 us a value); RunWriter::flush writes them. Any thread. A row must have
  // one value a channel; values that are not finite are written as missing.
  void append(std::span<const Row> rows);

 private:
  friend class RunWriter;
  struct State;
  explicit SampleStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class RunWriter {
 public:
  // Creates the folder `dir` with run.json and an empty folder for markers. An existing folder that holds anything but
  // zero-byte files is refused (exists): a run is never mixed with another. Errors name the path and, for a full or
  // read-only disk, the remedy; what was created is removed again.
  [[nodiscard]] static Result<std::unique_ptr<RunWriter>> create(const std::filesystem::path& dir,
                                                                 const Manifest& manifest);
  // Joins the run at `dir` that several machines of one launch write to shared storage, or begins it if this is the first
  // (no locks are needed; see run_join.hpp), and claims a node's folder there. `run` is what run.json shall hold, with
  // `parts`; `part` this machine's part, with `place`, whose `node` is the name wanted. The writer then keeps to its part:
  // write_manifest writes nodes/NODE/part.json, markers go to nodes/NODE/markers. Errors as for create; exists also for a
  // run of another launch and for a machine that has a part in the run already.
  [[nodiscard]] static Result<std::unique_ptr<RunWriter>> join(const std::filesystem::path& dir, const Manifest& run,
                                                               const Manifest& part);
  // Writes what is still buffered, as far as that is possible.
  ~RunWriter();
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  [[nodiscard]] const std::filesystem::path& dir() const;
  // The folder that holds `markers`, for ERGOMETER_RUN: dir(), of a part nodes/NODE below it.
  [[nodiscard]] const std::filesystem::path& marker_root() const;
  // Of a part: the node's name as claimed (the one wanted, or with digits of the boot id), which its Node must bear, and
  // what run.json says, written by whichever machine was first. Else "" and an empty manifest.
  [[nodiscard]] const std::string& node() const;
  [[nodiscard]] const Manifest& run() const;
  // Creates nodes/NODE, without node.json.
  [[nodiscard]] Result<void> add_node(const std::string& node);
  // (Re)writes run.json (of a part its part.json, with the claimed name) or node.json, atomically. write_node adds the
  // node if need be.
  [[nodiscard]] Result<void> write_manifest(const Manifest& manifest);
  [[nodiscard]] Result<void> write_node(const Node& node);
  // Opens nodes/NODE/samples/SENSOR.csv.zst; the node must have been added (not_found). A sensor can be opened once
  // (exists). The stream lives as long as the writer.
  [[nodiscard]] Result<SampleStream*> open_samples(const std::string& node, const SensorInfo& sensor);
  // Buffers an event for nodes/NODE/events.csv. Any thread.
  void add_event(const std::string& node, const Event& event);
  // Compresses and writes what is buffered: one frame a stream. With `before`, streams whose oldest buffered row is
  // not older than that wait for the next call, so that frames are larger and fewer. Called at least twice a second by
  // one thread. On an error (disk full) nothing is lost: the rows stay buffered, up to 64 MiB over all streams, and
  // are tried again; beyond that the oldest are dropped and the loss becomes an event as soon as events can be written.
  [[nodiscard]] Result<void> flush(std::optional<MonoTime> before = std::nullopt);
  // Reads the marker files of marker_root()/markers, writes the node's regions.csv and removes the marker files whose process
  // has ended. `cut_at` ends the regions that are still open. Call once, after the command has ended.
  [[nodiscard]] Result<void> write_regions(const std::string& node, MonoTime cut_at);

 private:
  struct State;
  explicit RunWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ergometer
