// The environment as a value, so that what depends on it (device visibility) can be tested without setting it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ergometer {

using Environment = std::map<std::string, std::string>;

// A copy of this process's environment.
[[nodiscard]] Environment current_environment();

// A variable's value, "" if it is not set.
[[nodiscard]] std::string value_of(const Environment& environment, const char* name);

// The rank that a parallel launcher (Open MPI, PMIx, PMI, Slurm, torchrun) gave this process, -1 without one; the same
// variables in the same order as the marker library's.
[[nodiscard]] std::int32_t launcher_rank(const Environment& environment);

}  // namespace ergometer
