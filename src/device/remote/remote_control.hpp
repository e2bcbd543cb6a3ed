// Controls that ergometerd sets for whom its configuration names: the other end of a lease. Used by the command line
// where this user may not set something.
#pragma once

#include "device/control_session.hpp"
#include "device/host.hpp"

namespace ergometer {

// Asks the daemon below host.root for a lease over all settings. The lease is a connection: when it ends, for whatever
// reason, the daemon restores. Nothing is opened before the returned function is called. Errors of the function:
// not_found where there is no daemon; permission_denied with the remedy; exists, naming the holder; those of Link.
[[nodiscard]] AskForControls controls_through_daemon(const Host& host);

// Whether a daemon serves this user, so that what this user may not set may be set nevertheless: only a lease can tell.
[[nodiscard]] bool daemon_may_control(const Host& host);

}  // namespace ergometer
