// `ergometer doctor`: checks whether energy can be measured here as the caller, one line a check with the remedy.
// Exit 0 if at least one energy domain can be measured, else 1.
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/number.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "device/registry.hpp"
#include "discover_options.hpp"

namespace ergometer::cli {
namespace {

enum class Grade { good, note, bad };

struct Check {
  Grade verdict;
  std::string what, remedy;
};

bool gives_energy(const Channel& c) { return c.method && c.measured && c.in_total; }

std::vector<Check> check_energy(const Discovery& found) {
  std::vector<Check> checks;
  std::set<std::string> domains;
  for (const auto& sensor : found.sensors)
    for (const auto& channel : sensor->info().channels)
      if (gives_energy(channel) && domains.insert(channel.domain).second)
        checks.push_back(
            {Grade::good, fmt::format("{} measured through {}", channel.domain, sensor->info().interface), ""});
  if (domains.empty())
    checks.push_back({Grade::bad, "no energy sensor can be read: runs will show an estimate only",
                      "see the missing sensors below"});
  for (const auto& absence : found.node.absences)
    checks.push_back(
        {Grade::note, fmt::format("{}: {}: {}", absence.interface, absence.what, absence.reason), absence.remedy});
  for (const auto& warning : found.warnings) checks.push_back({Grade::note, warning.message, warning.remedy});
  return checks;
}

Check check_perf(const HostRoot& root) {
  const auto level = read_number(root.path("/proc/sys/kernel/perf_event_paranoid"));
  if (!level) return {Grade::note, "perf events: " + level.error().message, ""};
  if (*level <= 0 || ::geteuid() == 0)
    return {Grade::good, fmt::format("perf events allowed (perf_event_paranoid {:g})", *level), ""};
  return {Grade::note, fmt::format("perf energy events need privileges (perf_event_paranoid {:g})", *level),
          "sudo sysctl kernel.perf_event_paranoid=0, or give the program CAP_PERFMON"};
}

Check check_governor(const HostRoot& root) {
  const auto governor = read_file(root.path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  if (!governor) return {Grade::note, "CPU frequency governor unknown (no cpufreq here)", ""};
  return {Grade::good, fmt::format("CPU frequency governor: {}", trim(*governor)), ""};
}

Check check_folder() {
  if (::access(".", W_OK) != 0)
    return {Grade::bad, "this folder cannot be written: runs cannot be stored here", "use: ergometer run -o FOLDER"};
  struct statvfs space {};
  if (::statvfs(".", &space) != 0) return {Grade::note, "free space of this folder is unknown", ""};
  const double free_bytes = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  if (free_bytes < 256.0 * (1 << 20))
    return {Grade::bad, fmt::format("only {:.0f} MiB free here", free_bytes / (1 << 20)), "free some space"};
  return {Grade::good, fmt::format("this folder can hold runs ({:.1f} GiB free)", free_bytes / (1 << 30)), ""};
}

void print(const Check& check) {
  constexpr const char* words[] = {"ok  ", "note", "BAD "};
  fmt::print("[{}] {}\n", words[static_cast<int>(check.verdict)], check.what);
  if (!check.remedy.empty()) fmt::print("       remedy: {}\n", check.remedy);
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("doctor", "Check what stands in the way of measuring here, with remedies");
  command->callback([&context] {
    const auto host = context.host();
    const auto found = discover(host, default_discover_options(context));
    if (!found) {
      context.exit_code = report_error(found.error());
      return;
    }
    auto checks = check_energy(*found);
    const bool measurable = checks.front().verdict == Grade::good;
    checks.push_back(check_perf(host.root));
    checks.push_back(check_governor(host.root));
    checks.push_back(check_folder());
    std::stable_sort(checks.begin(), checks.end(),
                     [](const Check& a, const Check& b) { return a.verdict < b.verdict; });
    for (const auto& check : checks) print(check);
    context.exit_code = measurable ? 0 : 1;
  });
}

}  // namespace ergometer::cli
