// Services: what the daemon does beside serving readings, and for whom: controls and jobs. Made by main, asked by
// Server.
#pragma once

#include <memory>

#include "daemon/caller.hpp"
#include "daemon/control_desk.hpp"
#include "daemon/job_keeper.hpp"

namespace ergometer::daemon {

// Which parts there are, and who may use them.
struct ServiceOptions {
  std::optional<JobKeeperOptions> jobs;        // unset: the daemon knows of no jobs
  std::optional<ControlDeskOptions> controls;  // unset: it sets nothing; may_control is filled in
  People controllers;
  bool job_owners_control = false;  // of a job that has the node to itself
};

// All functions may be called from any thread, and none waits.
class Services {
 public:
  explicit Services(ServiceOptions options);
  // Whether somebody who may not read is served nevertheless.
  [[nodiscard]] bool knows(const Peer& peer) const;
  // Longest line that this peer may say.
  [[nodiscard]] std::size_t longest_request(const Peer& peer) const;
  // Everything but list and read.
  void ask(const Caller& caller, remote::Request request, Answer answer);
  // A connection has ended.
  void left(std::uint64_t connection);

 private:
  [[nodiscard]] Result<void> may_control(const Peer& peer) const;
  void answer_about_job(const Caller& caller, remote::Request request, Answer answer);

  ServiceOptions options_;
  std::unique_ptr<JobKeeper> jobs_;
  std::unique_ptr<ControlDesk> controls_;  // last: it asks for what stands above
};

}  // namespace ergometer::daemon
