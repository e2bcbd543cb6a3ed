// ControlSession: controls that are set and will be restored, whoever does it: this process (ControlGuard) or a daemon
// that may do what its user may not (device/remote).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/control_plan.hpp"
#include "device/control_restore.hpp"

namespace ergometer {

// How a setting turned out.
struct Applied {
  std::string name;
  ControlValue requested;
  std::optional<ControlValue> effective;  // what the device goes by; of a running clock the highest that was seen
  bool in_effect = true;                  // false: the device goes by another value than the requested one
};

// The calls are those of ControlGuard. One thread at a time; its end restores what is still set.
class ControlSession {
 public:
  ControlSession() = default;
  ControlSession(const ControlSession&) = delete;
  ControlSession& operator=(const ControlSession&) = delete;
  virtual ~ControlSession() = default;
  [[nodiscard]] virtual Result<std::vector<Applied>> apply(std::vector<ControlSetting> settings) = 0;
  [[nodiscard]] virtual std::vector<Applied> observe() = 0;
  // Called once at most, and nothing after it.
  virtual std::vector<Restored> restore() = 0;
  [[nodiscard]] virtual Result<void> keep() = 0;
};

// Asks somebody else for a session over `settings`; `holder` is for people. Errors: not_found if there is nobody to
// ask.
using AskForControls = std::function<Result<std::unique_ptr<ControlSession>>(
    const std::vector<ControlSetting>& settings, const std::string& holder)>;

}  // namespace ergometer
