// The daemon's parts by themselves: Feed, Config, Listener, who may read.
#include <fcntl.h>

#include "daemon/access.hpp"
#include "daemon/config.hpp"
#include "daemon/limits.hpp"
#include "daemon_world.hpp"

namespace ergometer::test {
namespace {
using namespace daemon;
using namespace std::chrono_literals;

// Time that only passes by sleeping.
class JumpingClock final : public Clock {
 public:
  MonoTime now() override { return mono_ns(mono); }
  WallTime wall() override { return wall_ns(mono); }
  bool sleep_until(MonoTime deadline, StopSignal&) override {
    mono = std::max<std::int64_t>(mono, to_ns(deadline));
    return true;
  }
  std::atomic<std::int64_t> mono{1'000'000'000};
};

TEST(DaemonFeed, ReadsOnlyWhenAskedAndNeverFinerThanItsInterval) {
  auto sensor = std::make_shared<CountingSensor>();
  Feed feed(sensor, std::make_shared<JumpingClock>(), 50ms, {});
  EXPECT_EQ(sensor->reads, 0);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(feed.wait(feed.ask(), 20s));
    EXPECT_EQ(sensor->reads, i);
  }
  const auto batch = feed.from(0);
  ASSERT_EQ(batch.rows.size(), 3u);
  EXPECT_EQ(batch.rows[1].t - batch.rows[0].t, Nanos(50ms));
  EXPECT_EQ(batch.rows[2].t - batch.rows[1].t, Nanos(50ms));
  EXPECT_EQ(batch.cursor, 3u);
  EXPECT_FALSE(batch.more);
}

TEST(DaemonFeed, OneReadingServesAllWhoWait) {
  auto sensor = std::make_shared<CountingSensor>();
  sensor->blocked = true;
  Feed feed(sensor, std::make_shared<JumpingClock>(), 50ms, {});
  const auto first = feed.ask();
  while (sensor->reads == 0) ::usleep(100);
  // These come while a reading goes on, so they need the next one: one for both.
  const auto second = feed.ask(), third = feed.ask();
  EXPECT_EQ(second, first + 1);
  EXPECT_EQ(third, second);
  sensor->blocked = false;
  EXPECT_TRUE(feed.wait(third, 20s));
  EXPECT_EQ(sensor->reads, 2);
}

TEST(DaemonFeed, KeepsABoundedNumberAndCountsWhatIsLost) {
  auto sensor = std::make_shared<CountingSensor>();
  sensor->events_each = 99;
  Feed feed(sensor, std::make_shared<JumpingClock>(), 1ms, {});
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(feed.wait(feed.ask(), 20s));
  EXPECT_EQ(feed.end(), 3000u);
  auto batch = feed.from(0);
  EXPECT_EQ(batch.lost, 3000 - kKept);
  std::size_t heard = 0;
  for (;; batch = feed.from(batch.cursor)) {
    EXPECT_LE(batch.events.size(), remote::kMostEvents);
    heard += batch.rows.size() + batch.events.size();
    if (!batch.more) break;
  }
  EXPECT_EQ(heard, kKept);
  EXPECT_EQ(batch.rows.back().values[0], 30.0);
  EXPECT_EQ(feed.from(1u << 30).cursor, 3000u);
}

TEST(DaemonFeed, AFailureLeavesAMissingRow) {
  auto sensor = std::make_shared<CountingSensor>();
  Feed feed(sensor, std::make_shared<JumpingClock>(), 1ms, {});
  EXPECT_TRUE(feed.wait(feed.ask(), 20s));
  EXPECT_FALSE(feed.failure());
  sensor->failing = true;
  EXPECT_TRUE(feed.wait(feed.ask(), 20s));
  ASSERT_TRUE(feed.failure());
  EXPECT_EQ(feed.failure()->code, ErrorCode::lost);
  const auto batch = feed.from(0);
  ASSERT_EQ(batch.rows.size(), 2u);
  EXPECT_FALSE(batch.rows[1].values[0]);
}

TEST(DaemonConfig, ReadsItsKeys) {
  const auto c = parse_config(
      "read-groups = [\"energy\"]\nread-users = [\"ada\"]\nsensors = [\"rapl-powercap\"]\ninterval = \"20ms\"\n"
      "max-clients = 7\nmetrics = \"[::1]:9788\"\n",
      "x.toml");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->read_groups, std::vector<std::string>{"energy"});
  EXPECT_EQ(c->read_users, std::vector<std::string>{"ada"});
  EXPECT_EQ(c->sensors, std::vector<std::string>{"rapl-powercap"});
  EXPECT_EQ(c->interval, Nanos(20ms));
  EXPECT_EQ(c->max_clients, 7);
  EXPECT_EQ(c->metrics, "[::1]:9788");
  const Config defaults;
  EXPECT_EQ(defaults.interval, Nanos(50ms));
  EXPECT_EQ(defaults.read_groups, std::vector<std::string>{"ergometer"});
  EXPECT_TRUE(defaults.metrics.empty());
}

TEST(DaemonConfig, AnUnknownKeyNamesTheNearest) {
  const auto c = parse_config("\nread-group = [\"a\"]\n", "x.toml");
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().message, "x.toml:2: unknown key \"read-group\"");
  EXPECT_EQ(c.error().hint, "did you mean \"read-groups\"?");
}

TEST(DaemonConfig, BadValuesAreNamed) {
  for (const char* text :
       {"interval = 50", "interval = \"0ms\"", "interval = \"1h\"", "max-clients = 0", "max-clients = \"many\"",
        "read-groups = \"ergometer\"", "read-users = [1]", "sensors = []", "sensors = [\"procfs\"]",
        "sensors = [\"remote\"]", "metrics = 9788", "metrics = \"localhost\"", "metrics = \":9788\"",
        "metrics = \"127.0.0.1:99999\"", "interval = "}) {
    const auto c = parse_config(text, "x.toml");
    ASSERT_FALSE(c) << text;
    EXPECT_TRUE(c.error().message.starts_with("x.toml:1")) << c.error().message;
  }
}

TEST(DaemonConfig, AMissingFileIsAnErrorOnlyIfNamed) {
  EXPECT_TRUE(load_config("/nonexistent/ergometerd.toml", false));
  EXPECT_EQ(load_config("/nonexistent/ergometerd.toml", true).error().code, ErrorCode::not_found);
}

TEST(DaemonAccess, GroupsUsersAndRootMayRead) {
  const People readers{{1000}, {50}, ""};
  EXPECT_TRUE(is_among({0, 0, {}}, readers));
  EXPECT_TRUE(is_among({1000, 1000, {}}, readers));
  EXPECT_TRUE(is_among({1001, 50, {}}, readers)) << "by the primary group";
  EXPECT_TRUE(is_among({1001, 1001, {4, 50}}, readers)) << "by a supplementary group";
  EXPECT_FALSE(is_among({1001, 1001, {4, 27}}, readers));
  EXPECT_FALSE(is_among({1001, 0, {}}, People{})) << "root's group is not root";
}

TEST(DaemonAccess, NamesBecomeNumbers) {
  std::vector<std::string> unknown;
  const auto readers = resolve_people({"root", "no-such-user-here"}, {"4242", "no-such-group-here"}, "read-users", unknown);
  EXPECT_EQ(readers.users, std::vector<uid_t>{0});
  EXPECT_EQ(readers.groups, std::vector<gid_t>{4242});
  EXPECT_EQ(unknown, (std::vector<std::string>{"user no-such-user-here", "group no-such-group-here"}));
}

TEST(DaemonAccess, TheKernelTellsThePeer) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const auto peer = peer_of(pair[0]);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->uid, ::getuid());
  EXPECT_EQ(peer->gid, ::getgid());
  std::vector<gid_t> groups(65536);
  groups.resize(static_cast<std::size_t>(std::max(0, ::getgroups(static_cast<int>(groups.size()), groups.data()))));
  EXPECT_EQ(peer->groups, groups);
  ::close(pair[0]);
  ::close(pair[1]);
}

TEST(DaemonListener, OneANode) {
  TempDir dir;
  const auto path = dir / remote::kSocket;
  const auto first = Listener::open(path, {});
  ASSERT_TRUE(first) << first.error().message;
  const auto second = Listener::open(path, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::exists);
  const int client = connect_to(path);
  EXPECT_GE(client, 0) << "the first still listens";
  ::close(client);
}

TEST(DaemonListener, TakesThePlaceOfOneThatWasKilled) {
  TempDir dir;
  const auto path = dir / remote::kSocket;
  {
    auto killed = Listener::open(path, {});
    ASSERT_TRUE(killed);
    std::filesystem::rename(path, path.string() + ".kept");
  }
  std::filesystem::rename(path.string() + ".kept", path);
  EXPECT_EQ(connect_to(path), -1);
  const auto next = Listener::open(path, {});
  ASSERT_TRUE(next) << next.error().message;
  const int client = connect_to(path);
  EXPECT_GE(client, 0);
  ::close(client);
}

TEST(DaemonListener, LeavesWhatIsNoSocketAlone) {
  TempDir dir;
  dir.write(remote::kSocket, "precious");
  EXPECT_FALSE(Listener::open(dir / remote::kSocket, {}));
  EXPECT_EQ(dir.read(remote::kSocket), "precious");
}

}  // namespace
}  // namespace ergometer::test
