// `ergometer control show|set|restore`: power limits, clocks and governors, set for the time of a command and restored.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/file.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "control_places.hpp"
#include "device/control_guard.hpp"
#include "device/control_recovery.hpp"
#include "discover_options.hpp"
#include "report/table.hpp"
#include "report/units.hpp"
#include "run_live.hpp"
#include "run_process.hpp"

namespace ergometer::cli {
namespace {

using namespace std::chrono_literals;

// How often running clocks are looked at while the command works.
constexpr Nanos kWatchEvery = 200ms;
constexpr int kNotRestored = kCannotMeasure;

struct ControlOptions {
  std::string site_command;
  std::vector<std::string> requests;
  GuardianTask task;
  std::string journal;
};

// --- show -----------------------------------------------------------------------------------------------------------

std::string now_text(Control& control) {
  const auto set = control.get();
  const auto effective = control.effective();
  if (!set) return effective ? fmt::format("runs at {}", to_text(*effective)) : std::string(kMissing);
  if (effective && !same_value(control.describe(), *set, *effective))
    return fmt::format("{} ({} in effect)", to_text(*set), to_text(*effective));
  return to_text(*set);
}

std::string may_text(const ControlInfo& info) { return info.writable ? (*info.writable ? "yes" : "no") : "unknown"; }

int show(const Context& context, const ControlOptions& options) {
  warn_about_changed_controls(context);
  const auto found = find_controls(context.host(), default_discover_options(context), options.site_command);
  Table table;
  table.columns = {{"Control", false, 0}, {"Device", false, 2}, {"Now", false, 0},   {"Default", false, 1},
                   {"Range", false, 0},   {"Set by", false, 3}, {"We may", false, 1}};
  for (const auto& control : found.controls) {
    const auto& info = control->describe();
    table.rows.push_back({info.name, printable(info.device_name), now_text(*control),
                          info.default_value ? to_text(*info.default_value) : kMissing, range_text(info),
                          printable(info.writers), may_text(info)});
  }
  if (table.rows.empty())
    fmt::print("nothing here can be set\n");
  else
    fmt::print("{}", render_table(table, static_cast<std::size_t>(std::max(terminal_width(), 160)), 0));
  for (const auto& absence : found.absences) {
    fmt::print("{}: {}: {}\n", absence.interface, absence.what, printable(absence.reason));
    if (!absence.remedy.empty()) fmt::print("  {}\n", absence.remedy);
  }
  return 0;
}

// --- set ------------------------------------------------------------------------------------------------------------

int exit_code_of(const Error& error) {
  return error.code == ErrorCode::invalid_argument || error.code == ErrorCode::not_found ? kUsage : kCannotMeasure;
}

std::string holder_text(const std::vector<std::string>& command) {
  std::string text = command.empty() ? "control set" : fmt::format("control set -- {}", fmt::join(command, " "));
  if (text.size() > 120) text = text.substr(0, 117) + "...";
  return printable(text);
}

Result<std::vector<ControlSetting>> settings_of(const ControlOptions& options, const ControlDiscovery& found) {
  std::vector<ControlRequest> requests;
  for (const auto& text : options.requests) {
    auto request = parse_control_request(text);
    if (!request) return tl::unexpected(request.error());
    requests.push_back(std::move(*request));
  }
  return plan_controls(requests, found);
}

void tell_applied(const std::vector<ControlSetting>& settings, const std::vector<Applied>& all) {
  for (const auto& applied : all) {
    const auto setting =
        std::ranges::find_if(settings, [&](const auto& s) { return s.control->describe().name == applied.name; });
    const bool percent = setting != settings.end() && !setting->asked.empty();
    fmt::print(stderr, "ergometer: {} set to {}{}{}\n", applied.name, to_text(applied.requested),
               percent ? fmt::format(" ({})", setting->asked) : "",
               !applied.in_effect && applied.effective
                   ? fmt::format("; in effect is {}, which another limit holds", to_text(*applied.effective))
                   : "");
  }
}

void tell_not_in_effect(const std::vector<Applied>& all) {
  for (const auto& applied : all)
    if (!applied.in_effect && applied.effective)
      report_error({ErrorCode::unavailable,
                    fmt::format("{} not in effect: {} asked, {} seen", applied.name, to_text(applied.requested),
                                to_text(*applied.effective)),
                    "what was measured belongs to the value that was seen"});
}

// Returns whether all is as it was, or somebody else's.
bool tell_restored(const std::vector<Restored>& all) {
  for (const auto& one : all) {
    if (one.outcome == RestoreOutcome::untouched) continue;
    fmt::print(stderr, "ergometer: {}\n", one.text);
    if (!one.hint.empty()) fmt::print(stderr, "  {}\n", one.hint);
  }
  if (any_failed(all)) fmt::print(stderr, "  try again with: ergometer control restore\n");
  return !any_failed(all);
}

// A signal that came while nothing ran yet.
std::optional<int> pending_signal(Signals& signals) {
  return sleep_or_signal(signals, 1ms, Nanos{0}, [] {});
}

int run_under(ControlGuard& guard, const std::filesystem::path& file, const Context& context, Signals& signals) {
  auto command = Command::prepare(file, context.measured_command, {}, signals, {});
  if (!command) return report_error(command.error(), kCannotMeasure);
  if (auto begun = command->begin(); !begun) return report_error(begun.error(), kNotExecutable);
  std::vector<Applied> seen;
  const CommandEnd end = command->wait(signals, kWatchEvery, [&] { seen = guard.observe(); });
  command->end_tree(signals);
  tell_not_in_effect(seen);
  return end.exit_code;
}

int set(const Context& context, const ControlOptions& options) {
  const bool for_command = !context.measured_command.empty();
  std::optional<std::filesystem::path> file;
  if (for_command) {
    auto program = find_command(context.measured_command.front());
    if (!program)
      return report_error(program.error(), program.error().code == ErrorCode::not_found ? kNotFound : kNotExecutable);
    file = std::move(*program);
  }
  // From here on no signal ends us before what was set is restored.
  Signals signals;
  const auto found = find_controls(context.host(), default_discover_options(context), options.site_command);
  const auto settings = settings_of(options, found);
  if (!settings) return report_error(settings.error(), exit_code_of(settings.error()));
  auto guard = ControlGuard::acquire(
      context.host(), *settings,
      guard_options(context, options.site_command, holder_text(context.measured_command)));
  if (!guard) return report_error(guard.error(), exit_code_of(guard.error()));
  const auto applied = guard->apply(*settings);
  if (!applied) {
    tell_restored(guard->restore());
    return report_error(applied.error(), exit_code_of(applied.error()));
  }
  tell_applied(*settings, *applied);
  if (const auto signal = pending_signal(signals)) {
    tell_restored(guard->restore());
    return 128 + *signal;
  }
  if (!for_command) {
    if (auto kept = guard->keep(); !kept) return report_error(kept.error(), kCannotMeasure);
    fmt::print(stderr, "ergometer: it stays so until the machine restarts, or until: ergometer control restore\n");
    return 0;
  }
  const int code = run_under(*guard, *file, context, signals);
  const bool restored = tell_restored(guard->restore());
  return code == 0 && !restored ? kNotRestored : code;
}

// --- restore --------------------------------------------------------------------------------------------------------

int restore(const Context& context) {
  const Signals signals;  // nothing ends us half-way
  const auto places = places_of(context);
  if (!existing_journal(places)) {
    if (!ControlLock::is_held(places.lock)) {
      fmt::print("nothing to restore\n");
      return 0;
    }
  }
  const auto lock = ControlLock::take(places.lock, "control restore");
  if (!lock) return report_error(lock.error(), kCannotMeasure);
  const auto left = existing_journal(places);
  if (!left) {
    fmt::print("nothing to restore\n");
    return 0;
  }
  auto journal = JournalWriter::open(*left);
  if (!journal) return report_error(journal.error(), kCannotMeasure);
  const auto all = restore_with_found(context.host(), default_discover_options(context), *journal, 6);
  if (!tell_restored(all)) return kNotRestored;
  if (auto removed = journal->remove(); !removed) return report_error(removed.error(), kCannotMeasure);
  const auto restored = std::ranges::count_if(all, [](const auto& one) {
    return one.outcome == RestoreOutcome::restored || one.outcome == RestoreOutcome::reset;
  });
  fmt::print("{} restored; nothing of ours is set any more\n", restored);
  return 0;
}

// --- guard ----------------------------------------------------------------------------------------------------------

int guard(const Context& context, ControlOptions& options) {
  options.task.journal = options.journal;
  // It has all the time that a device needs to come back.
  const auto all = guardian_body(options.task, [&](JournalWriter& writer) {
    return restore_with_found(context.host(), default_discover_options(context), writer, 12);
  });
  if (!all.empty()) fmt::print(stderr, "ergometer: the program that had changed controls has died; its guardian:\n");
  return tell_restored(all) ? 0 : kNotRestored;
}

}  // namespace

void add_control(CLI::App& app, Context& context) {
  auto* control = app.add_subcommand("control", "Show, set and restore power limits, clocks and governors");
  control->require_subcommand(1);
  control->fallthrough();
  const auto options = std::make_shared<ControlOptions>();
  control
      ->add_option("--control-command", options->site_command,
                   "The site's own command that sets limits: it is called with NAME DEVICE VALUE")
      ->type_name("COMMAND");

  auto* show_app = control->add_subcommand("show", "What can be set here, its range, and whether we may");
  show_app->callback([&context, options] { context.exit_code = show(context, *options); });

  auto* set_app = control->add_subcommand("set", "Set controls, for the time of a command or until they are restored");
  set_app
      ->add_option("SETTING", options->requests,
                   "NAME=VALUE, as in gpu/0/power=200W, gpu/power=80%, cpu/governor=performance")
      ->required();
  set_app->footer(
      "With a command after two dashes, everything is as it was when the command has ended. Without one it stays set;\n"
      "`ergometer control restore` undoes it.\n\n"
      "Examples:\n"
      "  ergometer control set gpu/0/power=200W -- ergometer run -- python3 train.py\n"
      "  ergometer control set gpu/clock=53% cpu/governor=performance -- ./train\n");
  set_app->callback([&context, options] { context.exit_code = set(context, *options); });

  auto* restore_app = control->add_subcommand("restore", "Restore what an earlier command left set");
  restore_app->callback([&context] { context.exit_code = restore(context); });

  auto* guard_app = control->add_subcommand("guard", "The guardian process; started by the others");
  guard_app->group("");  // not for people
  guard_app->add_option("--life-fd", options->task.life_fd)->required();
  guard_app->add_option("--ready-fd", options->task.ready_fd)->required();
  guard_app->add_option("--lock-fd", options->task.lock_fd)->required();
  guard_app->add_option("--journal", options->journal)->required();
  guard_app->callback([&context, options] { context.exit_code = guard(context, *options); });
}

}  // namespace ergometer::cli
