// Settings: defaults of options from ERGOMETER_* variables and ergometer.toml, and how main parses its arguments with
// errors that name the nearest known word. Used by main alone.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace ergometer::cli {

// --host-root, --nvml, --version, and the help's examples.
void add_global_options(CLI::App& app, Context& context);

// Gives each option its default: ERGOMETER_NAME first, else NAME in the first of ./ergometer.toml and
// $XDG_CONFIG_HOME (~/.config)/ergometer/ergometer.toml that exists. NAME is the option's long name ("idle-before");
// a variable writes it in capitals with underscores. Errors: a file that is no TOML, a key or value that no option
// takes, a variable that is one or two letters away from a known one.
// The tables [ipmi], [redfish] and [meter], or ERGOMETER_IPMI_USER and the like, go into context.meter_settings, and
// these variables out of the environment. A password stands only in a file that nobody else can read.
[[nodiscard]] Result<void> apply_settings(CLI::App& app, Context& context);

// Takes what follows "--" out of the arguments into context.measured_command, parses the rest and runs the subcommand.
// Returns the exit code. Never throws.
int parse_and_run(CLI::App& app, Context& context, int argc, char** argv);

}  // namespace ergometer::cli
