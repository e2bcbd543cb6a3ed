// Discovery of the rapl backend; see README.md in this folder for its channels.
#pragma once

#include "device/rapl/perf.hpp"
#include "device/sensor.hpp"

namespace ergometer {

// Uses perf first and powercap second; DiscoverOptions::only may hold "rapl" (both), "rapl-perf" or "rapl-powercap".
// perf speaks to the running kernel, so below another filesystem root only powercap is used.
void discover_rapl(const Host& host, const DiscoverOptions& options, Discovery& out);

// The same with the system calls of perf given; perf then is used below any root.
void discover_rapl_with(const Host& host, const DiscoverOptions& options, const rapl::PerfCalls& calls, Discovery& out);

}  // namespace ergometer
