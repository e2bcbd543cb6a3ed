// Discovery of the amdgpu backend; see README.md in this folder for its channels.
#pragma once

#include "device/sensor.hpp"

namespace ergometer {

void discover_amdgpu(const Host& host, const DiscoverOptions& options, Discovery& out);

}  // namespace ergometer
