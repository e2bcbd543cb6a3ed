// The journal of a study: what has happened to its runs, a line of JSON each, on disk before the next step begins.
// Several writers (jobs of a batch system) have a journal each; together they are the study's state. Used by the engine,
// which writes, and by status and show, which read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/study_table.hpp"
#include "study/plan.hpp"

namespace ergometer {

// A process by what stays its own: the number alone may be given to another one.
struct ProcessId {
  int pid = 0;
  std::uint64_t started_ticks = 0;  // since boot, field 22 of /proc/PID/stat
  std::string boot_id;
};

// A control in one run, as text: "gpu/0/power", "300 W", "250 W".
struct ControlSeen {
  std::string name, requested, effective;
};

struct RunEnd {
  int exit_code = 0;
  bool timed_out = false;
  Verdict verdict = Verdict::valid;
  std::vector<std::string> reasons;
  std::map<std::string, StudyValue> metrics;
  double seconds = 0;  // with everything around it, for the estimate of what is left
  std::optional<double> energy_j, start_celsius;
  std::vector<ControlSeen> controls;  // those of which it is known what the device went by
};

// What the journals say of one run.
struct RunState {
  std::optional<int> order;  // of its last start
  std::string folder;        // relative to the study; "" before the first start
  std::int64_t started_unix_s = 0;
  std::optional<ProcessId> process;  // of a run that has begun and not ended
  std::optional<RunEnd> end;
  bool skipped = false;  // the cell's interval was narrow enough without it
  std::string job;       // the batch job that it was given to and has not ended in
};

struct StudyState {
  std::vector<RunState> runs;  // as the plan's
  int started = 0;             // runs so far, for the next one's order
  std::optional<std::int64_t> first_unix_s, last_unix_s;
};

// All journals of the folder. A last line that was cut is left out: its step was not done. Errors (corrupt): a damaged
// line in the middle, a run that the plan does not have.
[[nodiscard]] Result<StudyState> read_study_state(const std::filesystem::path& study, const Plan& plan);

class StudyJournal {
 public:
  // Opens STUDY/NAME, behind its last whole line; makes it. Errors: those of writing.
  [[nodiscard]] static Result<StudyJournal> open(const std::filesystem::path& study, const std::string& name);
  StudyJournal(StudyJournal&& other) noexcept;
  StudyJournal& operator=(StudyJournal&&) = delete;
  ~StudyJournal();

  // Each returns when the line is on disk. Errors: io (a full disk), then the step must not be done.
  [[nodiscard]] Result<void> started(std::size_t run, int order, const std::string& folder, const ProcessId& process);
  [[nodiscard]] Result<void> ended(std::size_t run, const RunEnd& end);
  [[nodiscard]] Result<void> skipped(const std::vector<std::size_t>& runs);
  [[nodiscard]] Result<void> submitted(const std::vector<std::size_t>& runs, const std::string& job);

 private:
  StudyJournal(std::filesystem::path file, int fd) : file_(std::move(file)), fd_(fd) {}
  [[nodiscard]] Result<void> append(std::string line);

  std::filesystem::path file_;
  int fd_ = -1;
};

// This very process, or one that runs now; nullopt if there is none.
[[nodiscard]] std::optional<ProcessId> process_id(int pid);
// Whether it still runs on this node.
[[nodiscard]] bool still_runs(const ProcessId& process);

}  // namespace ergometer
