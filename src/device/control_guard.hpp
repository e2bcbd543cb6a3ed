// ControlGuard: changes controls as a transaction. Takes the node's lock, starts a guardian, writes what it found to
// the journal, sets and reads back, and restores at its end, whatever that end is. Used by `ergometer control set`, by
// studies, and by the daemon for both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/control_lock.hpp"
#include "device/control_session.hpp"
#include "device/guardian.hpp"
#include "device/host.hpp"

namespace ergometer {

struct GuardOptions {
  std::string holder;  // for people: "control set -- python3 train.py", "study demo"
  ControlPlaces places;
  std::vector<std::string> guardian;    // program and arguments that end in guardian_body; empty: no guardian
  std::string nvml_path, site_command;  // what whoever restores later needs
  AskForControls elsewhere{};           // asked where this process may not set something; empty: nobody
};

// One thread at a time.
class ControlGuard {
 public:
  // `settings` are all that may be applied later, over all levels; no other device is ever touched. Checks every value
  // against the device, writes the journal, and proves the permission: each control is set to the value that it has
  // (one that cannot be read: to its first level, and reset). Where it is not permitted all of it is done by
  // `options.elsewhere` or nothing. Errors: exists (another holder; an earlier journal that was not restored),
  // permission_denied, invalid_argument, unsupported; then everything is as it was.
  [[nodiscard]] static Result<ControlGuard> acquire(const Host& host, const std::vector<ControlSetting>& settings,
                                                    GuardOptions options);
  ControlGuard(ControlGuard&&) noexcept = default;
  ControlGuard& operator=(ControlGuard&&) noexcept = default;
  // Restores what is still set; for the outcome call restore() before.
  ~ControlGuard() = default;

  // Sets one level and reads it back. May be called again for the next level without restoring in between: what the
  // former level changed and this one does not name goes back to what was found. Errors:
  // those of Control::set; exists if somebody else changed a control meanwhile, which is then left to them; io for a
  // value that reads back differently. After an error the caller restores.
  [[nodiscard]] Result<std::vector<Applied>> apply(std::vector<ControlSetting> settings);
  // Looks at what the device goes by while it works: call it under load, several times. The state since the last apply.
  [[nodiscard]] std::vector<Applied> observe();
  // Back to what was found. Afterwards the guard does nothing more. If something failed, the journal stays.
  std::vector<Restored> restore();
  // Leaves everything set, with a journal by which `ergometer control restore` undoes it. Errors: unsupported where
  // somebody else sets.
  [[nodiscard]] Result<void> keep();

 private:
  explicit ControlGuard(std::unique_ptr<ControlSession> session) : session_(std::move(session)) {}
  std::unique_ptr<ControlSession> session_;  // empty: it has ended
};

// One line that says what a journal left set, by whom and since when.
[[nodiscard]] std::string left_over_text(const Journal& journal, const std::string& boot_id);

}  // namespace ergometer
