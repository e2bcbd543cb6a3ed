// The one place that knows all backends. Used by the command line, the library and the daemon.
#pragma once

#include "device/sensor.hpp"

namespace ergometer {

// Names that DiscoverOptions::only and --sensors accept ("replay" and "fake" with "=FILE").
[[nodiscard]] std::vector<std::string> known_interfaces();

// Finds all sensors of this machine. Each backend looks on its own thread; one that has not answered within
// `patience` is left out with an Absence, so that a hung driver cannot hold up a run. Errors: an unknown name in
// options.only (with the nearest known one as hint), an unreadable replay or scenario file.
[[nodiscard]] Result<Discovery> discover(const Host& host, const DiscoverOptions& options,
                                         Nanos patience = std::chrono::seconds(5));

}  // namespace ergometer
