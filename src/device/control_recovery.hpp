// Restoring by a process that changed nothing itself: a guardian, `ergometer control restore`, a daemon that starts. It
// looks for the devices that a journal names.
#pragma once

#include <vector>

#include "device/control_restore.hpp"
#include "device/registry.hpp"

namespace ergometer {

// The controls of this machine, set by the site's command where one is given.
[[nodiscard]] ControlDiscovery find_controls(const Host& host, const DiscoverOptions& options,
                                             const std::string& site_command,
                                             const std::vector<std::string>& backends = {});

// restore_journal() with the driver and the command that the journal names. Loads no driver whose devices were left
// alone. The journal stays; the caller removes it if nothing failed.
[[nodiscard]] std::vector<Restored> restore_with_found(const Host& host, DiscoverOptions options, JournalWriter& writer,
                                                       int tries);

}  // namespace ergometer
