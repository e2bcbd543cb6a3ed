// Fake: sensors that follow a scenario file of shapes and faults, on the real or a stepped clock. Selectable in the
// shipped program (--sensors fake=FILE), so that the whole tool can be tried and tested without hardware.
#pragma once

#include <string>

#include "device/sensor.hpp"

namespace ergometer {

// `file` is a scenario (TOML, described in this folder's README.md). Time 0 of its shapes is the discovery. Errors
// name the file, the line and, for an unknown key or word, the nearest known one.
[[nodiscard]] Result<void> discover_fake(const Host& host, const std::string& file, Discovery& out);

}  // namespace ergometer
