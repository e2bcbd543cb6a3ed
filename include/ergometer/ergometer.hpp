// Ergometer, measured from C++ code: energy between a start and a stop of this process's machine, without the command
// line. Link with -lergometer. For naming parts of a program under `ergometer run`, see region.hpp instead.
//
//   ergometer::Measurement m;
//   work();
//   const auto& result = m.stop();
//   if (result.energy_j) std::printf("%f J\n", *result.energy_j);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ergometer {

struct MeasurementOptions {
  // Folder for the record; must not exist or be empty. Empty: a temporary one that is removed after stop().
  std::string run_dir;
  std::string name = "measurement";
  double interval_s = 0.1;              // of the fast gauges; from 0.001 to 3600
  std::vector<std::string> sensors;     // interfaces to use, as in --sensors; empty: all
  std::string host_root;                // prefix for /sys, /proc, /dev; empty: this machine
  std::string nvml_path = "libnvidia-ml.so.1";
};

// One domain's share, for example "gpu/0" or "package/1".
struct DomainResult {
  std::string domain;
  std::string method;                   // samples, counter, integral, average, model
  bool measured = true;                 // false: an estimate
  bool in_total = true;
  std::optional<double> energy_j, uncertainty_j;   // unset: not known; uncertainty: half-width of a 95 % interval
  double coverage = 0;                  // share of the time that readings cover
};

struct MeasurementResult {
  double duration_s = 0;
  std::optional<double> energy_j, uncertainty_j;   // measured domains of the total; unset: nothing could be measured
  std::vector<DomainResult> domains;
  std::vector<std::string> warnings;
};

// Measures from construction to stop(). Use from one thread at a time. Never throws and never ends the process: check
// error(). The destructor stops the sampling threads; a measurement that was not stopped leaves its record (if run_dir
// was given) marked as not complete.
class Measurement {
 public:
  explicit Measurement(const MeasurementOptions& options = {});
  ~Measurement();
  Measurement(Measurement&&) noexcept;
  Measurement& operator=(Measurement&&) noexcept;

  // Why it could not start or finish; empty if all is well.
  [[nodiscard]] const std::string& error() const;
  // Ends the measurement and derives its result. A second call returns the same result and measures nothing.
  const MeasurementResult& stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergometer
