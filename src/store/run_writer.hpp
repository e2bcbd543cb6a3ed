// RunWriter: writes a run directory while it happens (docs/run-format.md). Used by measure's Session and by importers.
// Samples leave as independent zstd frames with checksums, so that a killed run stays readable.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/manifest.hpp"
#include "model/node.hpp"
#include "model/region.hpp"
#include "model/trace.hpp"

namespace ergometer {

// One sample file. append() only copies into memory and may be called from any thread; RunWriter::flush writes.
class SampleStream {
 public:
  virtual ~SampleStream() = default;
  virtual void append(std::span<const Row> rows) = 0;
};

class RunWriter {
 public:
  // Creates the folder `dir` with run.json (state "running"). An existing folder that holds anything is refused
  // (exists): a run is never mixed with another. Errors name the path and, for a full or read-only disk, the remedy.
  [[nodiscard]] static Result<std::unique_ptr<RunWriter>> create(const std::filesystem::path& dir,
                                                                 const Manifest& manifest);
  virtual ~RunWriter() = default;
  [[nodiscard]] virtual const std::filesystem::path& dir() const = 0;
  // (Re)writes run.json or node.json, atomically. write_node creates the node's folder.
  [[nodiscard]] virtual Result<void> write_manifest(const Manifest& manifest) = 0;
  [[nodiscard]] virtual Result<void> write_node(const Node& node) = 0;
  // Opens nodes/NODE/samples/SENSOR.csv.zst; the node must have been written. The stream lives as long as the writer.
  [[nodiscard]] virtual Result<SampleStream*> open_samples(const std::string& node, const SensorInfo& sensor) = 0;
  // Buffers an event for nodes/NODE/events.csv. Any thread.
  virtual void add_event(const std::string& node, const Event& event) = 0;
  // Compresses and writes what is buffered: one frame a stream that has rows. Called at least twice a second by one
  // thread. On an error (disk full) nothing is lost: the rows stay buffered, up to 64 MiB, and are tried again;
  // beyond that the oldest are dropped and the loss becomes an event as soon as events can be written.
  [[nodiscard]] virtual Result<void> flush() = 0;
  // Reads the marker files of RUN/markers, writes each node's regions.csv and removes the marker files whose process
  // has ended. `cut_at` ends the regions that are still open. Call once, after the command has ended.
  [[nodiscard]] virtual Result<void> write_regions(const std::string& node, MonoTime cut_at) = 0;
};

}  // namespace ergometer
