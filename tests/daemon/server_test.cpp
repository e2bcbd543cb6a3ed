// The daemon and its clients in one process: sensors through the registry's eyes, and clients that mean no good.
#include <sys/resource.h>

#include "daemon/limits.hpp"
#include "daemon_world.hpp"

namespace ergometer::test {
namespace {
using namespace std::chrono_literals;

Discovery ask_all(const Host& host) {
  Discovery found;
  DiscoverOptions options;
  options.only = {"remote"};
  add_remote(host, options, 0, found);
  return found;
}

std::optional<double> read_value(Sensor& sensor) {
  Readings out;
  const auto result = sensor.read(out);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return out.rows.empty() ? std::nullopt : out.rows.back().values[0];
}

Absence forbidden(const std::string& interface) { return {interface, "energy", "permission denied", "chmod", true}; }

TEST(DaemonServer, ASensorReadsThroughIt) {
  auto counter = std::make_shared<CountingSensor>();
  DaemonWorld world({counter});
  auto found = ask_all(world.host());
  ASSERT_EQ(found.sensors.size(), 1u);
  auto& sensor = *found.sensors[0];
  EXPECT_EQ(sensor.info().name, "rapl-remote");
  EXPECT_EQ(sensor.info().interface, "rapl-powercap");
  EXPECT_TRUE(sensor.info().own_time);
  EXPECT_EQ(sensor.info().channels.at(0).domain, "package/0");
  EXPECT_EQ(counter->reads, 1) << "it was read when it was found, and nobody has asked since";
  Readings first;
  ASSERT_TRUE(sensor.read(first));
  ASSERT_EQ(first.rows.size(), 2u) << "from the beginning on";
  EXPECT_EQ(first.rows[0].values[0], 1.0);
  EXPECT_EQ(first.rows[1].values[0], 2.0);
  // Another client's reading is everybody's.
  auto other = ask_all(world.host());
  EXPECT_EQ(read_value(*other.sensors[0]), 4.0);
  Readings out;
  ASSERT_TRUE(sensor.read(out));
  ASSERT_EQ(out.rows.size(), 3u);
  EXPECT_EQ(out.rows[0].values[0], 3.0);
  EXPECT_EQ(out.rows[2].values[0], 5.0);
  EXPECT_LT(out.rows[0].t, out.rows[1].t);
  EXPECT_GT(out.rows[0].t, MonoTime{});
}

TEST(DaemonServer, AnErrorOfTheSensorArrivesAndGoes) {
  auto counter = std::make_shared<CountingSensor>();
  DaemonWorld world({counter});
  auto found = ask_all(world.host());
  auto& sensor = *found.sensors.at(0);
  EXPECT_EQ(read_value(sensor), 2.0);
  counter->failing = true;
  Readings out;
  const auto failed = sensor.read(out);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::lost);
  EXPECT_EQ(failed.error().message, "the counter is gone");
  counter->failing = false;
  ASSERT_TRUE(sensor.read(out));
  ASSERT_EQ(out.rows.size(), 2u) << "the missing row, then the new one";
  EXPECT_FALSE(out.rows[0].values[0]);
  EXPECT_EQ(out.rows[1].values[0], 4.0);
}

TEST(DaemonServer, OnlyWhatIsForbiddenComesFromIt) {
  DaemonWorld world({std::make_shared<CountingSensor>("rapl", std::vector<std::string>{"package/0", "dram/0"}),
                     std::make_shared<CountingSensor>("other", std::vector<std::string>{"package/1"})});
  Discovery found;
  add_remote(world.host(), {}, 0, found);
  EXPECT_TRUE(found.sensors.empty()) << "nothing is forbidden";
  found.node.absences = {forbidden("hwmon")};
  add_remote(world.host(), {}, 0, found);
  EXPECT_TRUE(found.sensors.empty()) << "the daemon has nothing of that interface";
  EXPECT_EQ(found.node.absences.size(), 1u);

  // The package is read directly, its DRAM is forbidden.
  found = {};
  found.sensors = {std::make_shared<CountingSensor>("rapl", std::vector<std::string>{"package/0", "package/1"})};
  found.node.absences = {{"nvml", "GPU", "no driver", ""}, forbidden("rapl-powercap")};
  found.warnings = {{"sensor-forbidden", "may not", "chmod"}, {"other", "stays", "else"}};
  add_remote(world.host(), {}, 0, found);
  ASSERT_EQ(found.sensors.size(), 2u);
  ASSERT_EQ(found.sensors[1]->info().channels.size(), 1u);
  EXPECT_EQ(found.sensors[1]->info().channels[0].domain, "dram/0");
  EXPECT_EQ(read_value(*found.sensors[1]), 2.0);
  ASSERT_EQ(found.node.absences.size(), 1u);
  EXPECT_EQ(found.node.absences[0].interface, "nvml");
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_EQ(found.warnings[0].code, "other");
}

TEST(DaemonServer, TheDaemonDoesNotAskItself) {
  DaemonWorld world({std::make_shared<CountingSensor>()});
  Discovery found;
  found.node.absences = {forbidden("rapl")};
  DiscoverOptions options;
  options.use_daemon = false;
  add_remote(world.host(), options, 0, found);
  EXPECT_TRUE(found.sensors.empty());
}

TEST(DaemonServer, WithoutASocketNothingIsSaid) {
  TempDir dir;
  Discovery found;
  found.node.absences = {forbidden("rapl")};
  add_remote(Host::real(dir.path()), {}, 0, found);
  EXPECT_EQ(found.node.absences.size(), 1u);
  EXPECT_TRUE(found.warnings.empty());
  found = ask_all(Host::real(dir.path()));
  ASSERT_EQ(found.node.absences.size(), 1u) << "but to whom asks for it by name";
  EXPECT_NE(found.node.absences[0].remedy.find("docs/daemon.md"), std::string::npos);
}

// A socket at which something else than a daemon is.
struct Impostor : TempDir {
  explicit Impostor(const std::string& says, bool answers = true) {
    std::filesystem::create_directories((*this / remote::kSocket).parent_path());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (*this / remote::kSocket).c_str(), sizeof(address.sun_path) - 1);
    fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd, 4), 0);
    if (!answers) return;
    thread = std::thread([this, says] {
      const int client = ::accept(fd, nullptr, nullptr);
      (void)!::send(client, says.data(), says.size(), MSG_NOSIGNAL);
      char piece[256];
      while (::recv(client, piece, sizeof(piece), 0) > 0) {
      }
      ::close(client);
    });
  }
  ~Impostor() {
    if (thread.joinable()) thread.join();
    close_fd(fd);
  }
  int fd = -1;
  std::thread thread;
};

Absence only_absence(const Discovery& found) {
  EXPECT_TRUE(found.sensors.empty());
  EXPECT_EQ(found.node.absences.size(), 1u);
  EXPECT_EQ(found.warnings.size(), 1u);
  for (const auto& w : found.warnings) EXPECT_EQ(w.code, "daemon-unusable");
  return found.node.absences.empty() ? Absence{} : found.node.absences[0];
}

TEST(DaemonClient, ADaemonOfAnotherVersionIsNamed) {
  Impostor old("{\"schema\":\"ergometer.daemon/0\",\"version\":\"0.0.9\",\"now_ns\":1}\n");
  const auto absence = only_absence(ask_all(Host::real(old.path())));
  EXPECT_EQ(absence.interface, "remote");
  EXPECT_NE(absence.reason.find("ergometerd 0.0.9 speaks ergometer.daemon/0"), std::string::npos) << absence.reason;
  EXPECT_NE(absence.remedy.find("same version"), std::string::npos);
}

TEST(DaemonClient, AnotherProgramAtTheSocketIsNamed) {
  Impostor other("220 mail.example ESMTP\n");
  EXPECT_EQ(only_absence(ask_all(Host::real(other.path()))).reason, "what answers is no ergometerd");
}

TEST(DaemonClient, AnotherClockIsRefused) {
  Impostor other(remote::greeting_line("x", mono_ns(5)));
  EXPECT_NE(only_absence(ask_all(Host::real(other.path()))).reason.find("clock"), std::string::npos);
}

TEST(DaemonClient, AHungDaemonCostsALimitedTime) {
  Impostor hung("", false);
  EXPECT_NE(only_absence(ask_all(Host::real(hung.path()))).reason.find("does not answer within 0.5 s"),
            std::string::npos);
}

TEST(DaemonClient, ADeadDaemonIsNamed) {
  Impostor dead("", false);
  close_fd(dead.fd);
  const auto absence = only_absence(ask_all(Host::real(dead.path())));
  EXPECT_NE(absence.reason.find("no ergometerd listens"), std::string::npos) << absence.reason;
  EXPECT_NE(absence.remedy.find("systemctl restart"), std::string::npos);
}

TEST(DaemonClient, GoesOnWithTheNextDaemon) {
  auto world = std::make_unique<DaemonWorld>(std::vector<std::shared_ptr<Sensor>>{std::make_shared<CountingSensor>()});
  auto found = ask_all(world->host());
  auto& sensor = *found.sensors.at(0);
  EXPECT_EQ(read_value(sensor), 2.0);
  world->stop();
  Readings out;
  const auto gone = sensor.read(out);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::lost);
  // The same place, a new daemon.
  auto listener = daemon::Listener::open(world->socket(), {});
  ASSERT_TRUE(listener);
  daemon::Server next(listener->fd(), world->host().clock, DaemonWorld::fast());
  next.add({std::make_shared<CountingSensor>()});
  std::thread thread([&] { EXPECT_TRUE(next.run()); });
  EXPECT_EQ(read_value(sensor), 1.0);
  next.stop();
  thread.join();
}

// --- clients that mean no good ------------------------------------------------------------------------------------

TEST(DaemonServer, GarbageIsAnsweredWithAnErrorAndTheEnd) {
  DaemonWorld world({std::make_shared<CountingSensor>()});
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n"), std::string("\0\xff\n", 3), std::string("{\"do\":\"fly\"}\n"),
        std::string(remote::kMostRequestBytes, 'x'), std::string(100000, '['), std::string("{}\n")}) {
    Talker talker(world.socket());
    EXPECT_TRUE(talker.is_greeted());
    talker.say(garbage);
    const auto answer = talker.hear();
    EXPECT_TRUE(answer.starts_with("{\"error\":")) << answer;
    EXPECT_EQ(talker.hear(), "");
  }
  auto found = ask_all(world.host());
  EXPECT_EQ(read_value(*found.sensors.at(0)), 2.0);
}

TEST(DaemonServer, AnUnknownSensorIsAnAnswer) {
  DaemonWorld world({std::make_shared<CountingSensor>()});
  Talker talker(world.socket());
  EXPECT_TRUE(talker.is_greeted());
  talker.say("{\"do\":\"read\",\"sensor\":\"nvml\"}\n{\"do\":\"list\"}\n");
  EXPECT_NE(talker.hear().find("no sensor \\\"nvml\\\""), std::string::npos);
  EXPECT_TRUE(remote::parse_sensors(talker.hear())) << "and the connection goes on";
}

TEST(DaemonServer, TooManyRequestsEndTheConnection) {
  DaemonWorld world({std::make_shared<CountingSensor>()});
  Talker talker(world.socket());
  EXPECT_TRUE(talker.is_greeted());
  std::string all;
  for (int i = 0; i < 20000; ++i) all += "{\"do\":\"list\"}\n";
  std::thread sender([&] { talker.say(all); });
  std::string last;
  for (auto line = talker.hear(); !line.empty(); line = talker.hear()) last = line;
  sender.join();
  EXPECT_NE(last.find("requests a second"), std::string::npos) << last;
}

TEST(DaemonServer, TwoHundredClientsSlowReadersAndGarbageLeaveItServing) {
  rlimit files{4096, 4096};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::vector<std::string> domains;
  for (int i = 0; i < 60; ++i) domains.push_back("package/" + std::to_string(i));
  auto counter = std::make_shared<CountingSensor>("rapl", domains);
  DaemonWorld world({counter});
  std::vector<Talker> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(world.socket());
  for (auto& client : clients) ASSERT_TRUE(client.is_greeted());
  for (int i = 0; i < 60; ++i) clients[static_cast<std::size_t>(i)].flood("{\"do\":\"list\"}\n");  // never reads
  for (int i = 60; i < 100; ++i) clients[static_cast<std::size_t>(i)].flood("\x01\x02garbage");
  for (int i = 100; i < 130; ++i) clients[static_cast<std::size_t>(i)].say("{\"do\":\"re");  // never ends
  for (std::size_t i = 130; i < 200; ++i) clients[i].say("{\"do\":\"read\",\"sensor\":\"rapl\"}\n");
  for (std::size_t i = 130; i < 200; ++i) {
    const auto batch = remote::parse_batch(clients[i].hear(), domains.size());
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_FALSE(batch->rows.empty());  // a reading that was under way counts as well
  }
  EXPECT_LE(counter->reads, 70);
  auto found = ask_all(world.host());
  EXPECT_TRUE(read_value(*found.sensors.at(0)));
}

TEST(DaemonServer, AHungSensorHoldsNobodyUp) {
  auto hung = std::make_shared<CountingSensor>("hung", std::vector<std::string>{"node"});
  auto counter = std::make_shared<CountingSensor>();
  hung->blocked = true;
  DaemonWorld world({hung, counter});
  Talker waiting(world.socket());
  EXPECT_TRUE(waiting.is_greeted());
  waiting.say("{\"do\":\"read\",\"sensor\":\"hung\"}\n");
  Talker other(world.socket());
  EXPECT_TRUE(other.is_greeted());
  other.say("{\"do\":\"read\",\"sensor\":\"rapl\"}\n");
  EXPECT_EQ(remote::parse_batch(other.hear(), 1).value().rows.size(), 1u);
  const auto late = remote::parse_batch(waiting.hear(), 1);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::timeout);
  world.stop();
  hung->blocked = false;
}

TEST(DaemonServer, TheNumberOfClientsIsBounded) {
  auto options = DaemonWorld::fast();
  options.max_clients = 3;
  DaemonWorld world({std::make_shared<CountingSensor>()}, options);
  std::vector<Talker> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(world.socket());
    EXPECT_TRUE(clients.back().is_greeted());
  }
  {
    Talker late(world.socket());
    const auto refused = remote::parse_greeting(late.hear());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_NE(refused.error().hint.find("max-clients"), std::string::npos);
    EXPECT_EQ(late.hear(), "");
  }
  clients.pop_back();
  bool greeted = false;
  for (int i = 0; i < 2000 && !greeted; ++i) {  // the daemon sees the end of the connection a moment later
    Talker next(world.socket());
    greeted = next.is_greeted();
    if (!greeted) ::usleep(10'000);
  }
  EXPECT_TRUE(greeted) << "a place became free";
}

}  // namespace
}  // namespace ergometer::test
