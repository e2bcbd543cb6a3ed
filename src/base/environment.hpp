// The environment as a value, so that what depends on it (device visibility) can be tested without setting it.
#pragma once

#include <map>
#include <string>

namespace ergometer {

using Environment = std::map<std::string, std::string>;

// A copy of this process's environment.
[[nodiscard]] Environment current_environment();

}  // namespace ergometer
