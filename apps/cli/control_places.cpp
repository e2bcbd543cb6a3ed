#include "control_places.hpp"

#include "base/environment.hpp"
#include "device/remote/remote_control.hpp"

namespace ergometer::cli {

ControlPlaces places_of(const Context& context) {
  return control_places(HostRoot(context.host_root), current_environment());
}

namespace {

// The guardian's program and arguments.
std::vector<std::string> guardian_command(const Context& context) {
  std::error_code ec;
  std::vector<std::string> words{"/proc/self/exe"};
  if (!context.host_root.empty())
    words.insert(words.end(), {"--host-root", std::filesystem::absolute(context.host_root, ec).string()});
  words.insert(words.end(), {"control", "guard"});
  return words;
}

}  // namespace

GuardOptions guard_options(const Context& context, const std::string& site_command, std::string holder) {
  GuardOptions options{std::move(holder), places_of(context), guardian_command(context),
                       lasting_path(context.nvml_path), site_command};
  if (site_command.empty()) options.elsewhere = controls_through_daemon(context.host());
  return options;
}

// Whoever restores later may do so from another folder.
std::string lasting_path(const std::string& library) {
  std::error_code ec;
  return library.find('/') == std::string::npos ? library : std::filesystem::absolute(library, ec).string();
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
