// JobRecord: what one node tells of one job, as a file that its user can read (docs/job-record.md), and the folder of
// them. Used by JobKeeper.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "model/summary.hpp"

namespace ergometer::daemon {

// The newest reading of a sensor: where counting goes on after a restart of the daemon.
struct LastReading {
  std::string sensor;
  std::vector<std::string> columns;
  MonoTime t;
  std::vector<std::optional<double>> values;
};

enum class JobState {
  running,
  complete,
  cut,  // the node restarted, or another job got all of it: the job's end was not told
};
[[nodiscard]] const char* to_word(JobState state);

struct JobRecord {
  std::string job, user, node, boot_id, version;
  std::int64_t uid = 0;
  bool exclusive = false;
  int attempt = 0;  // 1 for a job that was requeued once
  JobState state = JobState::running;
  MonoTime begin, end;  // while it runs, `end` is the last reading
  WallTime begin_wall, end_wall;
  Nanos interval{0};
  std::vector<DomainEnergy> domains;
  std::map<std::string, double> others;  // jobs that were on the node in this time: for how many seconds
  std::vector<LastReading> last;         // while it runs
};

// The whole text of the file.
[[nodiscard]] std::string job_record_text(const JobRecord& record);
// The same in one line, for the socket.
[[nodiscard]] std::string job_record_line(const JobRecord& record);
[[nodiscard]] Result<JobRecord> parse_job_record(std::string_view text, const std::string& source);

// FOLDER/JOB/NODE.json, and NODE~1.json, ... of attempts before a requeue. Thread-compatible.
class JobFolder {
 public:
  JobFolder(std::filesystem::path folder, std::string node) : folder_(std::move(folder)), node_(std::move(node)) {}
  // Replaces the record as a whole; it belongs to the job's user, others cannot read it. Errors: io, permission_denied.
  [[nodiscard]] Result<void> write(const JobRecord& record) const;
  [[nodiscard]] Result<JobRecord> read(const std::string& job) const;
  // Jobs of this node whose record says that they run. What cannot be read is left alone and named in `problems`.
  [[nodiscard]] std::vector<JobRecord> running(std::vector<Error>& problems) const;
  // Keeps the record of an ended attempt beside the next one. Returns the next one's number.
  [[nodiscard]] Result<int> set_aside(const std::string& job) const;
  // Removes this node's records that were last written before `oldest`, and folders that are empty then.
  void remove_older(WallTime oldest) const;

 private:
  [[nodiscard]] std::filesystem::path file_of(const std::string& job) const;
  [[nodiscard]] bool is_ours(const std::string& name) const;
  std::filesystem::path folder_;
  std::string node_;
};

}  // namespace ergometer::daemon
