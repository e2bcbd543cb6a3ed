// The one place that knows all backends. Used by the command line, the library and the daemon.
#pragma once

#include "device/control.hpp"
#include "device/sensor.hpp"

namespace ergometer {

// Names that DiscoverOptions::only and --sensors accept ("replay" and "fake" with "=FILE", node meters with
// "=HOST", "=FILE" or "=COMMAND").
[[nodiscard]] std::vector<std::string> known_interfaces();

// "TABLE.KEY" of everything that DiscoverOptions::meter_settings may hold.
[[nodiscard]] std::vector<std::string> known_meter_settings();

// A search for the sensors of this machine that has begun. Each backend looks on its own thread, so that a hung driver
// cannot hold up a run. Used by one thread at a time.
class SensorSearch {
 public:
  // Errors: an unknown name in options.only, with the nearest known one as hint.
  [[nodiscard]] static Result<SensorSearch> begin(const Host& host, DiscoverOptions options,
                                                  Nanos patience = std::chrono::seconds(5));
  SensorSearch(SensorSearch&&) noexcept;
  SensorSearch& operator=(SensorSearch&&) noexcept;
  ~SensorSearch();

  // What kernel files and named recordings give, within milliseconds. Call once. Errors: an unreadable replay or
  // scenario file.
  [[nodiscard]] Result<Discovery> quick();
  // After quick(): adds what takes tens of milliseconds, the drivers of accelerators and the controllers
  // behind node meters, and the model that fills in for
  // what nothing else measures. A backend that has not answered within the patience is left out with an Absence.
  void finish(Discovery& found);
  // The same one by one: waits for whichever answers next and adds it, so that a slow one keeps no other back; the
  // model comes last. False when nothing is left to add.
  bool next(Discovery& found);

 private:
  struct State;
  explicit SensorSearch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The whole search at once.
[[nodiscard]] Result<Discovery> discover(const Host& host, const DiscoverOptions& options,
                                         Nanos patience = std::chrono::seconds(5));

// The controls of this machine. `backends` restricts the search ("nvml", "rapl", "cpufreq", "amdgpu"); empty: all. Loads
// a driver's library only if its backend is wanted. options.environment decides which GPUs are visible.
[[nodiscard]] ControlDiscovery discover_controls(const Host& host, const DiscoverOptions& options,
                                                 const std::vector<std::string>& backends = {});

}  // namespace ergometer
