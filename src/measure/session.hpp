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
#include "store/run_writer.hpp"

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
  std::optional<Place> place;  // where this is; a part needs it
};

// What is known of a run before it begins, as its first manifest; for RunWriter::join.
[[nodiscard]] Manifest first_manifest(const SessionOptions& options, Clock& clock);

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
  // `part`: this machine's part of a run that several machines write, as RunWriter::join gave it; run_dir counts for
  // nothing then.
  [[nodiscard]] static Result<std::unique_ptr<Session>> start(const Host& host, SessionOptions options,
                                                              std::unique_ptr<RunWriter> part = {});
  // Stops if still running; the run is then left marked as not complete.
  ~Session();

  [[nodiscard]] const std::filesystem::path& run_dir() const;
  // The folder that holds `markers`, for ERGOMETER_RUN.
  [[nodiscard]] const std::filesystem::path& marker_root() const;
  // Complete after stop(); before it only without late devices.
  [[nodiscard]] const Node& node() const;
  [[nodiscard]] std::vector<Warning> warnings() const;
  // Notes the moments of the run. Any of them may be left out.
  void idle_before_begins();
  void idle_before_ends();
  void command_begins();
  // `begin`, `end`: of the first and the last rank, where there are several; unset: command_begins() and now.
  void command_ended(std::optional<int> exit_code, std::optional<int> signal, std::optional<MonoTime> begin = {},
                     std::optional<MonoTime> end = {});
  void idle_after_begins();
  void idle_after_ends();
  void event(std::string source, std::string kind, std::string detail);
  void warn(Warning warning);
  // For the record, written with the manifest's next writing: the ranks on this machine with the names by which they
  // know it, and how its clock lies against the other machines'. Any thread.
  void note_ranks(std::vector<RankEnd> ranks, std::vector<std::string> aliases);
  void note_clock(ClockLink link);
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
