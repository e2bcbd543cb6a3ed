// The ipmi backend: node power from the machine's management controller, in band or over LAN. Used by the registry.
#pragma once

#include "device/sensor.hpp"

namespace ergometer {

// In band where /dev/ipmi0 exists; over LAN with "ipmi=HOST" or the setting ipmi.host, account in ipmi.user and
// ipmi.password. Talks to the controller: milliseconds, or seconds where it is slow.
void discover_ipmi(const Host& host, const DiscoverOptions& options, Discovery& out);

}  // namespace ergometer
