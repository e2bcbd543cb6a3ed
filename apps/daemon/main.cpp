// `ergometerd`: reads the sensors that need privileges and serves them to those who may read. This file only puts the
// parts together.
#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <thread>

#include "daemon/config.hpp"
#include "daemon/listener.hpp"
#include "daemon/metrics.hpp"
#include "daemon/server.hpp"
#include "device/registry.hpp"
#include "device/remote/protocol.hpp"

namespace {
using namespace ergometer;
using namespace ergometer::daemon;

constexpr const char* kConfigFile = "/etc/ergometer/ergometerd.toml";
constexpr int kUsage = 2, kCannotServe = 3;

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

DiscoverOptions discover_options(const Config& config) {
  DiscoverOptions options;
  options.environment = current_environment();
  options.interval = config.interval;
  options.only = config.sensors;
  options.use_daemon = false;
  return options;
}

int serve(const Host& host, const Config& config) {
  raise_descriptor_limit(config.max_clients);
  const auto socket = host.root.path(remote::kSocket);
  const auto listener = Listener::open(socket, current_environment());
  if (!listener) return report(listener.error(), kCannotServe);

  std::vector<std::string> unknown;
  ServerOptions options{resolve_readers(config.read_users, config.read_groups, unknown), config.max_clients,
                        config.interval, ERGOMETER_VERSION};
  for (const auto& name : unknown) note(fmt::format("there is no {}: nobody may read by that name", name));
  auto search = SensorSearch::begin(host, discover_options(config));
  if (!search) return report(search.error(), kUsage);
  auto found = search->quick();
  if (!found) return report(found.error(), kUsage);

  Server server(listener->fd(), host.clock, std::move(options));
  server.add(found->sensors);
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
  std::filesystem::path config_file, host_root;
  app.set_version_flag("--version", std::string("ergometerd " ERGOMETER_VERSION));
  app.add_option("--config", config_file, std::string("Configuration; default ") + kConfigFile)->type_name("FILE");
  app.add_option("--host-root", host_root, "Read /sys, /proc, /dev and serve /run below this folder")
      ->type_name("DIR")
      ->envname("ERGOMETER_HOST_ROOT");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  // Before any thread is born: all of them inherit it, and only the waiter takes the signals.
  const auto set = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const bool named = !config_file.empty();
  const auto config = load_config(named ? config_file : std::filesystem::path(kConfigFile), named);
  if (!config) return report(config.error(), kUsage);
  return serve(Host::real(host_root), *config);
}
