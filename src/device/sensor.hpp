// Sensor: reads a fixed set of channels of one interface. Implemented once a backend (src/device/<b>/), polled by
// measure's Sampler on one thread. Discovery: what a backend found, with reasons for what it did not.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "device/host.hpp"
#include "device/process_roots.hpp"
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
  // Sensors that name the same thread are read on it one after another: many cheap reads for one wake-up. Empty: a
  // thread of its own, which a read that may block needs.
  [[nodiscard]] const std::string& thread() const { return thread_; }
  // Renumbers a GPU's sensor by `by`: name "gpu1-slow" and domains "gpu/1", "gpu/1/package". Other sensors stay as they
  // are. For the registry, which numbers the GPUs of all drivers one after another; before the first read.
  void shift_gpu_number(int by);

 protected:
  explicit Sensor(SensorInfo info, std::string thread = {}) : info_(std::move(info)), thread_(std::move(thread)) {}
  SensorInfo info_;

 private:
  std::string thread_;
};

struct DiscoverOptions {
  Environment environment;             // of the measured command: CUDA_VISIBLE_DEVICES and the like
  std::optional<Nanos> interval;       // of the fast gauges; default 100 ms
  std::vector<std::string> only;       // interfaces to use: "nvml", "rapl", "replay=FILE", ...; empty: all real ones
  std::string nvml_path = "libnvidia-ml.so.1";
  // Calibration: everything that gives energy is read at `interval`, also what is dear or changes slowly.
  bool dense = false;
  std::optional<double> cpu_tdp_w;     // for the model; unset: a default stated in its note
  // Of node meters, by "TABLE.KEY" (known_meter_settings()): "redfish.user". Secrets are among them: never recorded.
  std::map<std::string, std::string> meter_settings;
  bool use_daemon = true;              // ask ergometerd for what is forbidden; false in the daemon itself
  int root_pid = 0;                    // processes below this one are the measured tree; 0: this process
  std::shared_ptr<const ProcessRoots> more_roots;  // and those below these; null: none
  std::vector<Environment> other_ranks;  // of ranks on this node beside the measured command: their GPUs are visible too
};

// Everything a backend adds. A backend never fails as a whole: what is missing becomes an Absence.
struct Discovery {
  std::vector<std::shared_ptr<Sensor>> sensors;
  Node node;                           // composition parts; node.sensors is filled by the caller from `sensors`
  std::vector<Warning> warnings;
};

}  // namespace ergometer
