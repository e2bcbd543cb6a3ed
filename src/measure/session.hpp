// Session: one measurement from start to stop. Finds the sensors, polls each on its own thread, writes the run
// directory. Joins device and store; used by `ergometer run` and by the library (include/ergometer/ergometer.hpp).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "device/registry.hpp"
#include "device/sensor.hpp"
#include "model/manifest.hpp"

namespace ergometer {

struct SessionOptions {
  std::filesystem::path run_dir;
  std::string name;
  std::vector<std::string> command;
  std::string directory;
  DiscoverOptions discover;
  std::vector<std::string> require;  // interfaces, sensors or domains ("nvml", "gpu/0") without which nothing starts
  // Do not wait for drivers that take long to start (NVML: 40 ms and more); their sensors join when they are ready. The
  // driver's sample buffer reaches back, so their power is not lost. Has no effect with `require`.
  bool late_devices = false;
};

// The state shown while a run goes on.
struct LiveView {
  Nanos elapsed{0};
  struct DomainPower {
    std::string domain;
    std::optional<double> power_w;
    bool measured = true;
  };
  std::vector<DomainPower> domains;  // in the total only, newest power
  std::optional<double> energy_j;    // measured so far, in the total
  std::string region;                // current innermost region
};

class Session {
 public:
  // Discovers, checks `require` (an Error that names what is missing and its remedy; nothing was started), creates the
  // run directory, starts the samplers and returns when each energy and power sensor (but late ones and those whose
  // device keeps a history) gave its first reading or 2 s have passed. On a SteppedClock the thread that calls start()
  // and stop() must be a Participant.
  [[nodiscard]] static Result<std::unique_ptr<Session>> start(const Host& host, SessionOptions options);
  // Stops if still running; the run is then left marked as not complete.
  ~Session();

  [[nodiscard]] const std::filesystem::path& run_dir() const;
  // Complete after stop(); before it only without late devices.
  [[nodiscard]] const Node& node() const;
  [[nodiscard]] std::vector<Warning> warnings() const;
  // Notes the moments of the run. Any of them may be left out.
  void idle_before_begins();
  void idle_before_ends();
  void command_begins();
  void command_ended(std::optional<int> exit_code, std::optional<int> signal);
  void idle_after_begins();
  void idle_after_ends();
  void event(std::string source, std::string kind, std::string detail);
  void warn(Warning warning);
  [[nodiscard]] LiveView live();
  // Takes a last reading of every sensor, stops them (one that hangs is left behind after 3 s and recorded as a gap),
  // writes regions and run.json. Idempotent: later calls return the same manifest and write nothing. An Error means
  // that run.json could not be written; smaller trouble with the output is a warning of the manifest.
  [[nodiscard]] Result<Manifest> stop();
  // After stop(): whether a read that never returned was left behind, so that the process should end by _exit().
  [[nodiscard]] bool left_thread_behind() const;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ergometer
