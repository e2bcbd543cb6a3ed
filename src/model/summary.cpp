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

const char* to_word(PartRole v) {
  switch (v) {
    case PartRole::part:
      return "part";
    case PartRole::idle_gpu:
      return "idle_gpu";
    case PartRole::meter:
      return "meter";
    case PartRole::inside:
      break;
  }
  return "inside";
}

}  // namespace ergometer
