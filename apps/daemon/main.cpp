// `ergometerd`: reads the sensors that need privileges and serves them to those who may read, sets controls for those
// who may control, and keeps the records of jobs. This file only puts the parts together.
#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/config.hpp"
#include "daemon/listener.hpp"
#include "daemon/metrics.hpp"
#include "daemon/server.hpp"
#include "daemon/services.hpp"
#include "device/control_recovery.hpp"
#include "device/guardian.hpp"
#include "device/remote/protocol.hpp"

namespace {
using namespace ergometer;
using namespace ergometer::daemon;

constexpr const char* kConfigFile = "/etc/ergometer/ergometerd.toml";
constexpr int kUsage = 2, kCannotServe = 3;
constexpr int kGuardianTries = 12;  // it has all the time that a device needs to come back

int report(const Error& error, int code) {
  fmt::print(stderr, "ergometerd: {}\n", error.message);
  if (!error.hint.empty()) fmt::print(stderr, "  {}\n", error.hint);
  return code;
}

void note(const std::string& text) {
  fmt::print(stderr, "ergometerd: {}\n", text);
  std::fflush(stderr);
}

// A client more is a descriptor more; the sensors need some too.
void raise_descriptor_limit(int max_clients) {
  rlimit limit{};
  const auto needed = static_cast<rlim_t>(max_clients) + 256;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(limit.rlim_max, needed);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

void tell_absences(const std::vector<Absence>& absences) {
  for (const auto& a : absences)
    note(fmt::format("no {}: {}: {}{}", a.interface, a.what, a.reason, a.remedy.empty() ? "" : " (" + a.remedy + ")"));
}

struct Invocation {
  std::filesystem::path config_file, host_root;
  std::string nvml_path = "libnvidia-ml.so.1";
  GuardianTask guardian;
  std::string guardian_journal;
};

DiscoverOptions discover_options(const Config& config, const Invocation& invocation) {
  DiscoverOptions options;
  options.nvml_path = invocation.nvml_path;
  options.environment = current_environment();
  options.interval = config.interval;
  options.only = config.sensors;
  options.use_daemon = false;
  return options;
}

// This program again, as the guardian of what it sets.
std::vector<std::string> guardian_command(const Invocation& invocation) {
  std::error_code ec;
  std::vector<std::string> words{"/proc/self/exe"};
  if (!invocation.host_root.empty())
    words.insert(words.end(), {"--host-root", std::filesystem::absolute(invocation.host_root, ec).string()});
  words.push_back("guard");
  return words;
}

int guard(const Invocation& invocation) {
  auto task = invocation.guardian;
  task.journal = invocation.guardian_journal;
  DiscoverOptions options;
  options.use_daemon = false;
  const auto all = guardian_body(task, [&](JournalWriter& writer) {
    return restore_with_found(Host::real(invocation.host_root), options, writer, kGuardianTries);
  });
  if (!all.empty()) note("the daemon that had changed controls has died; its guardian:");
  for (const auto& one : all) note(one.text);
  return any_failed(all) ? kCannotServe : 0;
}

std::string node_name(const Host& host) {
  const auto told = read_file(host.root.path("/proc/sys/kernel/hostname"), 4096);
  if (told && !trim(*told).empty()) return file_name_of(trim(*told));
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] ? file_name_of(name.data()) : "localhost";
}

std::optional<JobKeeperOptions> job_options(const Host& host, const Config& config, const Discovery& found,
                                            const Server& server) {
  if (!config.jobs) return std::nullopt;
  JobKeeperOptions options;
  options.host = host;
  options.node = found.node;
  options.node.name = node_name(host);
  options.interval = config.job_interval;
  options.folder = host.root.path(config.job_records.string());
  options.keep = config.job_keep;
  options.version = ERGOMETER_VERSION;
  options.feeds = [&server] { return server.feeds(); };
  options.note = note;
  return options;
}

std::optional<ControlDeskOptions> control_options(const Host& host, const Config& config,
                                                  const Invocation& invocation) {
  if (config.control_groups.empty() && config.control_users.empty() && !config.control_jobs) return std::nullopt;
  ControlDeskOptions options;
  options.host = host;
  options.nvml_path = invocation.nvml_path;
  for (const auto& text : config.controls)
    if (auto allowed = parse_allowed(text))
      options.allowed.push_back(std::move(*allowed));  // the configuration has checked
  options.guardian = guardian_command(invocation);
  options.note = note;
  return options;
}

int serve(const Host& host, const Config& config, const Invocation& invocation) {
  raise_descriptor_limit(config.max_clients);
  const auto socket = host.root.path(remote::kSocket);
  const auto listener = Listener::open(socket, current_environment());
  if (!listener) return report(listener.error(), kCannotServe);

  std::vector<std::string> unknown;
  ServerOptions options{resolve_people(config.read_users, config.read_groups, "read-users", unknown),
                        config.max_clients, config.interval, ERGOMETER_VERSION};
  const auto controllers = resolve_people(config.control_users, config.control_groups, "control-users", unknown);
  for (const auto& name : unknown) note(fmt::format("there is no {}: nobody is allowed anything by that name", name));
  auto search = SensorSearch::begin(host, discover_options(config, invocation));
  if (!search) return report(search.error(), kUsage);
  auto found = search->quick();
  if (!found) return report(found.error(), kUsage);

  Server server(listener->fd(), host.clock, std::move(options));
  server.add(found->sensors);
  Services services({job_options(host, config, *found, server), control_options(host, config, invocation), controllers,
                     config.control_jobs});
  server.serve_also(services);
  std::unique_ptr<MetricsEndpoint> metrics;
  if (!config.metrics.empty()) {
    auto opened = MetricsEndpoint::open(config.metrics, server, ERGOMETER_VERSION);
    if (!opened) return report(opened.error(), kCannotServe);
    metrics = std::move(*opened);
  }

  // Clients need not wait for a management controller that takes seconds.
  std::thread late([&server, &found, search = std::move(*search)]() mutable {
    const auto quick = static_cast<std::ptrdiff_t>(found->sensors.size());
    search.finish(*found);
    server.add({found->sensors.begin() + quick, found->sensors.end()});
    tell_absences(found->node.absences);
  });
  std::thread waiter([&server] {
    const auto set = ending_signals();
    int signal = 0;
    ::sigwait(&set, &signal);
    server.stop();
  });
  note(fmt::format("serves at {}{}", socket.string(),
                   metrics ? fmt::format(", metrics at port {}", metrics->port()) : std::string()));
  const auto served = server.run();
  if (!served) ::kill(::getpid(), SIGTERM);  // ends the waiter
  waiter.join();
  late.join();
  return served ? 0 : report(served.error(), kCannotServe);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Reads the sensors that need privileges and serves them over a Unix socket.", "ergometerd"};
  Invocation invocation;
  app.set_version_flag("--version", std::string("ergometerd " ERGOMETER_VERSION));
  app.add_option("--config", invocation.config_file, std::string("Configuration; default ") + kConfigFile)
      ->type_name("FILE");
  app.add_option("--host-root", invocation.host_root, "Read /sys, /proc, /dev and serve /run below this folder")
      ->type_name("DIR")
      ->envname("ERGOMETER_HOST_ROOT");
  app.add_option("--nvml", invocation.nvml_path, "NVIDIA's library")->type_name("PATH")->envname("ERGOMETER_NVML");
  auto* guard_app = app.add_subcommand("guard", "The guardian process; started by the daemon");
  guard_app->group("");  // not for people
  guard_app->add_option("--life-fd", invocation.guardian.life_fd)->required();
  guard_app->add_option("--ready-fd", invocation.guardian.ready_fd)->required();
  guard_app->add_option("--lock-fd", invocation.guardian.lock_fd)->required();
  guard_app->add_option("--journal", invocation.guardian_journal)->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (guard_app->parsed()) return guard(invocation);
  // Before any thread is born: all of them inherit it, and only the waiter takes the signals.
  const auto set = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const bool named = !invocation.config_file.empty();
  const auto config = load_config(named ? invocation.config_file : std::filesystem::path(kConfigFile), named);
  if (!config) return report(config.error(), kUsage);
  return serve(Host::real(invocation.host_root), *config, invocation);
}
