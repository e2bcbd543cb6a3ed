// What the control and study commands and main share: where the journal is, how a guardian starts, and the message about
// controls that an earlier run left changed.
#pragma once

#include "command.hpp"
#include "device/control_guard.hpp"

namespace ergometer::cli {

[[nodiscard]] ControlPlaces places_of(const Context& context);

// What a guard needs to know. Where this user may not set something ergometerd is asked, unless the site has a command
// for it.
[[nodiscard]] GuardOptions guard_options(const Context& context, const std::string& site_command, std::string holder);
// A library's path for whoever restores later, perhaps from another folder.
[[nodiscard]] std::string lasting_path(const std::string& library);

// Tells on standard error what an earlier run left changed, and how to restore it; nothing while that run is alive. One
// stat() a place when there is nothing to tell.
void warn_about_changed_controls(const Context& context);

}  // namespace ergometer::cli
