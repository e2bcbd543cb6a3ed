// `--config FILE`: options of a command from a file in CLI11's TOML form, `key = value`, in sections [train] and
// [infer] or in none. Used by cli.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace ergometer::workload {

// The arguments with the file's options put before them, so that the command line wins where both give one. `app` has
// the commands; nothing is parsed by it. Without --config they come back as they are. Errors: the file cannot be read,
// a key that the command does not have (names the nearest).
[[nodiscard]] Result<std::vector<std::string>> with_config_file(const CLI::App& app,
                                                                std::vector<std::string> arguments);

}  // namespace ergometer::workload
