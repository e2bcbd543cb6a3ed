#include "control_places.hpp"

#include "base/environment.hpp"
#include "device/control_guard.hpp"
#include "device/control_restore.hpp"

namespace ergometer::cli {

ControlPlaces places_of(const Context& context) {
  return control_places(HostRoot(context.host_root), current_environment());
}

void warn_about_changed_controls(const Context& context) {
  const auto places = places_of(context);
  const auto left = existing_journal(places);
  if (!left || ControlLock::is_held(places.lock)) return;
  const auto journal = read_journal(*left);
  if (!journal) {
    report_error(journal.error());
    return;
  }
  if (!journal->changed()) return;
  report_error({ErrorCode::exists, left_over_text(*journal, boot_id(HostRoot(context.host_root))),
                "to restore: ergometer control restore"});
}

}  // namespace ergometer::cli
