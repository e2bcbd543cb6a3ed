// What ergometerd answers to requests about controls (docs/daemon-protocol.md): both directions, as in protocol.hpp.
// Controls are numbers in the order of the lease request. Pure functions; every parser takes foreign bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "device/control_session.hpp"

namespace ergometer::remote {

struct AppliedSetting {
  int control = 0;
  std::string requested;
  std::optional<std::string> effective;
  bool in_effect = true;
};

struct RestoredControl {
  int control = -1;  // -1: no control, the journal
  Restored what;
};

// The lease covers so many controls.
[[nodiscard]] std::string lease_answer_line(int controls);
[[nodiscard]] std::string applied_line(const std::vector<AppliedSetting>& applied);
[[nodiscard]] std::string restored_line(const std::vector<RestoredControl>& restored);

// The daemon's own error where the line is one, `corrupt` for what cannot be understood.
[[nodiscard]] Result<int> parse_lease_answer(std::string_view line);
[[nodiscard]] Result<std::vector<AppliedSetting>> parse_applied(std::string_view line);
[[nodiscard]] Result<std::vector<RestoredControl>> parse_restored(std::string_view line);

}  // namespace ergometer::remote
