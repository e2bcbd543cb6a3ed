// DiscoverOptions from the command line's context and the caller's environment. Shared by run, sensors and doctor.
#pragma once

#include "command.hpp"
#include "device/sensor.hpp"

namespace ergometer::cli {

inline DiscoverOptions default_discover_options(const Context& context) {
  DiscoverOptions options;
  options.environment = current_environment();
  options.nvml_path = context.nvml_path;
  options.meter_settings = context.meter_settings;
  return options;
}

}  // namespace ergometer::cli
