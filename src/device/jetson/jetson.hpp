// Discovery of the jetson backend; see README.md in this folder for its channels.
#pragma once

#include "device/sensor.hpp"

namespace ergometer {

void discover_jetson(const Host& host, const DiscoverOptions& options, Discovery& out);

}  // namespace ergometer
