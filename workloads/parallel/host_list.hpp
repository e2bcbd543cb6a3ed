// Slurm's short form of host names, "node[01-03,7],login". Used by rank_from_environment.
#pragma once

#include <string>
#include <string_view>

namespace ergometer::workload {

// The first host: "node01" of the above; "" of none. Every bracket stands for its first number.
[[nodiscard]] inline std::string first_host(std::string_view list) {
  std::string host;
  bool skipping = false;  // the rest of a bracket
  bool inside = false;
  for (const char c : list) {
    if (c == '[') {
      inside = true;
    } else if (c == ']') {
      inside = skipping = false;
    } else if (!inside && c == ',') {
      break;
    } else if (inside && (c == '-' || c == ',')) {
      skipping = true;
    } else if (!skipping) {
      host += c;
    }
  }
  return host;
}

}  // namespace ergometer::workload
