// Sensor: reads a fixed set of channels of one interface. Implemented once a backend (src/device/<b>/), polled by
// measure's Sampler on one thread. Discovery: what a backend found, with reasons for what it did not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "device/host.hpp"
#include "model/node.hpp"
#include "model/trace.hpp"
#include "model/warning.hpp"

namespace ergometer {

// Where a Sensor puts what it read. Filled by read(), emptied by the caller.
class Readings {
 public:
  // A row at the device's own time (SensorInfo::own_time). Times need not be new: rows not later than the last
  // recorded one are dropped by the Sampler, so a sensor may hand out its whole buffer.
  void add_at(MonoTime t, std::vector<std::optional<double>> values) { rows.push_back({t, Nanos{0}, std::move(values)}); }
  // A row whose time is the middle of this read; the Sampler fills in time and width.
  void add(std::vector<std::optional<double>> values) { rows.push_back({MonoTime{}, Nanos{0}, std::move(values)}); }
  // Something to record in events.csv (kind as in model's Event); report a state once, when it changes.
  void event(std::string kind, std::string detail) { events.push_back({std::move(kind), std::move(detail)}); }

  struct Note {
    std::string kind, detail;
  };
  std::vector<Row> rows;
  std::vector<Note> events;
};

class Sensor {
 public:
  virtual ~Sensor() = default;
  [[nodiscard]] const SensorInfo& info() const { return info_; }
  // For discovery, which completes what is known of the channels before anybody reads them.
  [[nodiscard]] std::vector<Channel>& channels() { return info_.channels; }
  // Reads all channels once. No new reading is success with no row; a value that is missing is nullopt inside its
  // row. An Error means that nothing could be read this time: the Sampler records a gap and tries again, slower
  // and slower up to every 5 s. May block (it has its own thread); is never called from two threads at once.
  [[nodiscard]] virtual Result<void> read(Readings& out) = 0;

 protected:
  explicit Sensor(SensorInfo info) : info_(std::move(info)) {}
  SensorInfo info_;
};

struct DiscoverOptions {
  Environment environment;             // of the measured command: CUDA_VISIBLE_DEVICES and the like
  std::optional<Nanos> interval;       // of the fast gauges; default 100 ms
  std::vector<std::string> only;       // interfaces to use: "nvml", "rapl", "replay=FILE", ...; empty: all real ones
  std::string nvml_path = "libnvidia-ml.so.1";
  std::optional<double> cpu_tdp_w;     // for the model; unset: a default stated in its note
  int root_pid = 0;                    // processes below this one are the measured tree; 0: this process
};

// Everything a backend adds. A backend never fails as a whole: what is missing becomes an Absence.
struct Discovery {
  std::vector<std::shared_ptr<Sensor>> sensors;
  Node node;                           // composition parts; node.sensors is filled by the caller from `sensors`
  std::vector<Warning> warnings;
};

}  // namespace ergometer
