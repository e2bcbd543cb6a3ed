// Discovery of the model backend; see README.md in this folder for its channel.
#pragma once

#include "device/sensor.hpp"

namespace ergometer {

// Adds the estimate `model` unless `out` already holds a measured energy or power of a package, psys, module or node.
// Comes after all other backends.
void discover_model(const Host& host, const DiscoverOptions& options, Discovery& out);

}  // namespace ergometer
