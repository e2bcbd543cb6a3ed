#include "device/control_recovery.hpp"

#include "device/command_control.hpp"

namespace ergometer {

ControlDiscovery find_controls(const Host& host, const DiscoverOptions& options, const std::string& site_command,
                               const std::vector<std::string>& backends) {
  auto found = discover_controls(host, options, backends);
  if (!site_command.empty())
    for (auto& control : found.controls) control = set_by_command(control, site_command);
  return found;
}

std::vector<Restored> restore_with_found(const Host& host, DiscoverOptions options, JournalWriter& writer, int tries) {
  const auto& journal = writer.journal();
  std::vector<std::string> backends;
  for (const auto& item : journal.items)
    if (item.changed()) backends.push_back(item.backend);
  if (backends.empty()) return {};
  if (!journal.nvml_path.empty()) options.nvml_path = journal.nvml_path;
  const auto found = find_controls(host, options, journal.site_command, backends);
  return restore_journal(
      writer, [&](const JournalItem& item) { return control_of(item, found.controls); }, boot_id(host.root),
      *host.clock, tries);
}

}  // namespace ergometer
