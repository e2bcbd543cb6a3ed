// The command line of ergometer-workload: options to a workload's functions and errors to exit codes. Used by main.cpp
// and, in process, by the tests.
#pragma once

#include <string>
#include <vector>

#include "core/workload.hpp"

namespace ergometer::workload {

// `arguments` without the program's name. Exit code: 0, 1 (data, files or device), 2 (usage).
[[nodiscard]] int run_cli(const std::vector<std::string>& arguments, Console console);

}  // namespace ergometer::workload
