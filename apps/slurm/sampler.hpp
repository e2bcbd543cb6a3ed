// The sampler of a step on this node: `ergometer step`, started by slurmstepd as the user and ended with the step. It
// is no child of slurmstepd and in a session of its own, so that neither its end nor its hanging is the step's. Used by
// plugin.cpp.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ergometer::spank {

// One place for the record.
struct SamplerRun {
  // Descriptors are added: --until-fd N, which tells it of tasks and ends it with the end of file, and --ready-fd N.
  std::vector<std::string> argv;
  std::string manifest;           // where it is there, this place is taken
  std::string link, link_target;  // a symbolic link made as well, if it is not there; "" is none
  std::string log;                // standard output and error
};

struct SamplerStart {
  std::vector<SamplerRun> runs;          // the first that is free; else the last
  std::vector<std::string> environment;  // NAME=VALUE
  std::vector<std::string> folders;      // made in this order, as the user, if they are not there
  uid_t uid = 0;
  gid_t gid = 0;
};

class Sampler {
 public:
  // Forks twice and returns; whatever touches files or waits is done by the new process. False where there is none.
  // The caller is slurmstepd with the user's effective ids and groups.
  [[nodiscard]] bool start(const SamplerStart& start);
  // The folder for markers as soon as the sampler has made it; "" if it has not within 1 s.
  [[nodiscard]] std::string wait_until_ready();
  // A line of news of a task, for `ergometer step`. Never waits.
  void tell(const std::string& line);
  // Asks it to end, without waiting.
  void ask_to_end();
  // Waits for its end: 1 s, and up to 10 s for one that says it is at work (its record may lie on slow storage); then
  // SIGTERM and 1 s more, then SIGKILL. Returns what went wrong, "" if nothing did.
  [[nodiscard]] std::string finish();
  [[nodiscard]] bool started() const { return fd_ >= 0; }

 private:
  enum class Heard { nothing, it_is_alive, its_end };
  Heard listen(int wait_ms);
  bool ends_within(int wait_ms);
  int fd_ = -1;  // our end of the pair: it reads the end of file when the sampler is gone
  int ready_fd_ = -1;
  pid_t pid_ = -1;
  bool asked_ = false, early_ = false;  // early: it had gone when it was asked
  std::string said_;
};

}  // namespace ergometer::spank
