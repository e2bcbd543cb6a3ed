// Discovery of the remote backend: sensors that ergometerd reads for users who may not read them themselves; see
// README.md in this folder. Called by the registry after the direct backends.
#pragma once

#include <cstddef>

#include "device/sensor.hpp"

namespace ergometer {

// Asks the daemon for what the absences from number `first_absence` on call forbidden (with "remote" in options.only:
// for all it has) and adds a sensor for each that measures a domain which no sensor in `found` measures; absences and
// warnings that are so resolved are taken back. Without a forbidden sensor nothing is opened, and where there is no
// socket one connect() is all that it costs. A daemon that is dead, of another version or refuses us becomes an
// Absence and a warning. Takes at most a second.
void add_remote(const Host& host, const DiscoverOptions& options, std::size_t first_absence, Discovery& found);

}  // namespace ergometer
