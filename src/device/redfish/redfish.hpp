// The redfish backend: node power and energy from a management controller over HTTPS. Used by the registry.
#pragma once

#include "device/sensor.hpp"

namespace ergometer {

// Only where asked for: "redfish=HOST" or the setting redfish.host, with redfish.user and redfish.password. Looks for
// at most 4 s; a controller that is slower is looked at on by the sensor itself.
void discover_redfish(const Host& host, const DiscoverOptions& options, Discovery& out);

}  // namespace ergometer
