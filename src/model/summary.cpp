#include "model/summary.hpp"

namespace ergometer {

const char* to_word(Sharing v) {
  switch (v) {
    case Sharing::alone:
      return "alone";
    case Sharing::shared:
      return "shared";
    case Sharing::unknown:
      break;
  }
  return "unknown";
}

}  // namespace ergometer
