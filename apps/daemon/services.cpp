#include "daemon/services.hpp"

#include <fmt/format.h>

#include <utility>

namespace ergometer::daemon {
namespace {

using Kind = remote::Request::Kind;

void refuse_request(const Answer& answer, ErrorCode code, std::string message, std::string hint) {
  answer(remote::error_line({code, std::move(message), std::move(hint)}));
}

}  // namespace

Services::Services(ServiceOptions options) : options_(std::move(options)) {
  if (options_.jobs) jobs_ = std::make_unique<JobKeeper>(*options_.jobs);
  if (!options_.controls) return;
  options_.controls->may_control = [this](const Peer& peer) { return may_control(peer); };
  controls_ = std::make_unique<ControlDesk>(*options_.controls);
}

Result<void> Services::may_control(const Peer& peer) const {
  if (is_among(peer, options_.controllers)) return {};
  const bool by_job = options_.job_owners_control && jobs_;
  if (by_job && jobs_->has_node(peer.uid)) return {};
  return fail(ErrorCode::permission_denied,
              fmt::format("permission denied: ergometerd sets no controls for user {}", peer.uid),
              by_job ? fmt::format("in a batch job that has the node to itself (sbatch --exclusive), or: {}",
                                   options_.controllers.remedy)
                     : options_.controllers.remedy);
}

bool Services::knows(const Peer& peer) const {
  return (jobs_ && jobs_->knows(peer.uid)) || (controls_ && may_control(peer));
}

std::size_t Services::longest_request(const Peer& peer) const {
  return controls_ && may_control(peer) ? remote::kMostControlBytes : remote::kMostRequestBytes;
}

void Services::ask(const Caller& caller, remote::Request request, Answer answer) {
  switch (request.kind) {
    case Kind::job_begin:
    case Kind::job_end:
    case Kind::job:
      return answer_about_job(caller, std::move(request), std::move(answer));
    default:
      break;
  }
  if (controls_) return controls_->ask(caller, std::move(request), std::move(answer));
  refuse_request(answer, ErrorCode::permission_denied, "permission denied: ergometerd sets no controls on this node",
                 "the administrator may name users in control-groups of ergometerd.toml: docs/daemon.md");
}

void Services::answer_about_job(const Caller& caller, remote::Request request, Answer answer) {
  if (!jobs_)
    return refuse_request(answer, ErrorCode::unavailable, "ergometerd keeps no records of jobs on this node",
                          "set jobs = true in ergometerd.toml: docs/daemon.md");
  const bool asks = request.kind == Kind::job;
  if (!asks && caller.peer.uid != 0)
    return refuse_request(answer, ErrorCode::permission_denied,
                          fmt::format("permission denied: user {} may not tell ergometerd of jobs", caller.peer.uid),
                          "the resource manager does it as root: docs/job-record.md");
  // Whose job had the node to itself may control no more.
  auto done = asks ? std::move(answer) : Answer([this, answer = std::move(answer)](std::string line) {
    if (controls_) controls_->look_again();
    answer(std::move(line));
  });
  jobs_->ask(caller, std::move(request), std::move(done));
}

void Services::left(std::uint64_t connection) {
  if (controls_) controls_->left(connection);
}

}  // namespace ergometer::daemon
