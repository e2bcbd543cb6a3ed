// What the control and study commands and main share: where the journal is, how a guardian starts, and the message about
// controls that an earlier run left changed.
#pragma once

#include "command.hpp"
#include "device/control_journal.hpp"
#include "device/control_lock.hpp"

namespace ergometer::cli {

[[nodiscard]] ControlPlaces places_of(const Context& context);

// The guardian's program and arguments.
[[nodiscard]] std::vector<std::string> guardian_command(const Context& context);
// A library's path for whoever restores later, perhaps from another folder.
[[nodiscard]] std::string lasting_path(const std::string& library);

// Tells on standard error what an earlier run left changed, and how to restore it; nothing while that run is alive. One
// stat() a place when there is nothing to tell.
void warn_about_changed_controls(const Context& context);

}  // namespace ergometer::cli
