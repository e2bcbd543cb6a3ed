// The command line of ergometer-workload: options to training, inference and data, and errors to exit codes. Used by
// main.cpp and, in process, by the tests.
#pragma once

#include <string>
#include <vector>

#include "core/workload.hpp"

namespace ergometer::workload {

// `arguments` without the program's name. `terminal`: console.notes is one, and shows progress. Exit code: 0, 1 (data,
// files or device), 2 (usage); with --ranks that of the first rank that failed.
[[nodiscard]] int run_cli(const std::vector<std::string>& arguments, Console console, bool terminal = false);

}  // namespace ergometer::workload
