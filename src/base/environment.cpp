#include "base/environment.hpp"

#include <unistd.h>

#include <cstdint>
#include <string_view>

#include "base/number.hpp"

namespace ergometer {

Environment current_environment() {
  Environment environment;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::string value_of(const Environment& environment, const char* name) {
  const auto it = environment.find(name);
  return it == environment.end() ? std::string() : it->second;
}

std::int32_t launcher_rank(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) {
    const auto variable = environment.find(name);
    const auto value = variable != environment.end() ? parse_int(variable->second) : std::nullopt;
    if (value && *value >= 0 && *value <= INT32_MAX) return static_cast<std::int32_t>(*value);
  }
  return -1;
}

}  // namespace ergometer
