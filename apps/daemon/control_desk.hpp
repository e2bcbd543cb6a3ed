// ControlDesk: sets limits and clocks for those who may, through ControlGuard. A lease is a connection: when it ends,
// for whatever reason, everything is as it was. Used by Services.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/caller.hpp"
#include "daemon/control_rules.hpp"
#include "device/host.hpp"
#include "device/remote/protocol.hpp"

namespace ergometer::daemon {

struct ControlDeskOptions {
  Host host;
  std::string nvml_path = "libnvidia-ml.so.1";
  std::vector<AllowedControl> allowed;  // to all but root
  std::vector<std::string> guardian;    // program and first arguments, as GuardOptions has it
  // Whether somebody may control now; the error has the remedy. Called on the desk's thread.
  std::function<Result<void>(const Peer&)> may_control;
  Note note;
};

// All functions may be called from any thread, and none waits. There is one lease a node, as there is one lock: a limit
// changes what others measure.
class ControlDesk {
 public:
  // Restores first what a daemon that died with its guardian left set.
  explicit ControlDesk(ControlDeskOptions options);
  // Restores what is leased.
  ~ControlDesk();
  ControlDesk(const ControlDesk&) = delete;
  ControlDesk& operator=(const ControlDesk&) = delete;

  // lease, apply, observe, restore.
  void ask(const Caller& caller, remote::Request request, Answer answer);
  // A connection has ended.
  void left(std::uint64_t connection);
  // Who may control has changed: a lease whose holder may not any more ends.
  void look_again();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergometer::daemon
