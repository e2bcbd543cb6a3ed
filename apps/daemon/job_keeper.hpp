// JobKeeper: while the resource manager's jobs are on the node it reads the sensors at a low rate and keeps a record
// for each of them (docs/job-record.md). Used by Services.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/caller.hpp"
#include "daemon/feed.hpp"
#include "device/host.hpp"
#include "model/node.hpp"

namespace ergometer::daemon {

struct JobKeeperOptions {
  Host host;
  Node node;  // with its name
  Nanos interval = std::chrono::seconds(10);
  std::filesystem::path folder;              // of the records
  Nanos keep = std::chrono::hours(90 * 24);  // of records after their last change
  std::string version;                       // of this program
  std::function<std::vector<std::shared_ptr<Feed>>()> feeds;
  Note note;
};

// All functions may be called from any thread, and none waits.
class JobKeeper {
 public:
  // Goes on with the jobs whose records say that they run.
  explicit JobKeeper(JobKeeperOptions options);
  // Leaves records by which the next daemon goes on.
  ~JobKeeper();
  JobKeeper(const JobKeeper&) = delete;
  JobKeeper& operator=(const JobKeeper&) = delete;

  // job_begin, job_end, job. Whether the caller may tell of jobs is checked before.
  void ask(const Caller& caller, remote::Request request, Answer answer);
  // Whether a user has a job here now.
  [[nodiscard]] bool knows(uid_t uid) const;
  // Whether a user's job has the node to itself: it was begun as exclusive, and no other user has one here.
  [[nodiscard]] bool has_node(uid_t uid) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergometer::daemon
