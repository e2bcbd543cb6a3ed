// Warning: something a user must know about a result, as data, with its remedy.
#pragma once

#include <string>

namespace ergometer {

struct Warning {
  std::string code;     // stable, lower case with hyphens: "sensor-missing", "partial-total", "counter-reset"
  std::string message;  // names the thing
  std::string remedy;   // may be empty
  bool operator==(const Warning&) const = default;
};

}  // namespace ergometer
