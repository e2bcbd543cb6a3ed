#include "model/study_table.hpp"

namespace ergometer {

const char* to_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::valid: return "valid";
    case Verdict::invalid: return "invalid";
    case Verdict::failed: return "failed";
    case Verdict::missing: return "missing";
  }
  return "missing";
}

std::optional<Verdict> verdict_of(const std::string& word) {
  for (const Verdict verdict : {Verdict::valid, Verdict::invalid, Verdict::failed, Verdict::missing}) {
    if (word == to_word(verdict)) return verdict;
  }
  return std::nullopt;
}

}  // namespace ergometer
