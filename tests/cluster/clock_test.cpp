// Clocks of several nodes: the exchange over TCP between processes, some of them in a time namespace of their own.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/file.hpp"
#include "cluster/clock_service.hpp"
#include "cluster/clock_watch.hpp"
#include "model/manifest.hpp"
#include "store/run_json.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::test {
namespace {
using namespace std::chrono_literals;
using ::testing::HasSubstr;

// A system clock whose monotonic time is shifted, as on another machine.
class ShiftedClock final : public Clock {
 public:
  explicit ShiftedClock(Nanos by, std::optional<Nanos> error = std::nullopt) : by_(by), error_(error) {}
  MonoTime now() override { return clock_.now() + by_; }
  WallTime wall() override { return clock_.wall(); }
  bool sleep_until(MonoTime deadline, StopSignal& stop) override { return clock_.sleep_until(deadline - by_, stop); }
  std::optional<Nanos> wall_error() override { return error_; }

 private:
  SystemClock clock_;
  Nanos by_;
  std::optional<Nanos> error_;
};

std::unique_ptr<ClockServer> serving(Nanos shift = Nanos{0}, const char* machine = "reference") {
  auto server = ClockServer::open(machine);
  EXPECT_TRUE(server);
  (*server)->serve(std::make_shared<ShiftedClock>(shift));
  return std::move(*server);
}

TEST(ClockExchange, TellsTheOffsetWithinItsError) {
  const auto server = serving(1000s);
  SystemClock clock;
  const auto offset = ask_clock(server->address(), clock, 2s);
  ASSERT_TRUE(offset) << offset.error().message;
  EXPECT_GT(offset->error, Nanos{0});
  EXPECT_LE(std::abs((offset->offset - 1000s).count()), offset->error.count());
  EXPECT_LE(offset->at, clock.now());
}

TEST(ClockExchange, TakesTheAddressThatWorks) {
  const auto server = serving();
  auto address = server->address();
  // TEST-NET-1 leads nowhere; the text is no address at all.
  address.addresses = {"192.0.2.77", "no address", "127.0.0.1"};
  SystemClock clock;
  EXPECT_TRUE(ask_clock(address, clock, 2s));
}

TEST(ClockExchange, NobodyThereIsAnErrorInTime) {
  ClockAddress address{"", {"127.0.0.1"}, 1, "a", "b"};
  SystemClock clock;
  const auto offset = ask_clock(address, clock, 300ms);
  ASSERT_FALSE(offset);
  EXPECT_THAT(offset.error().message, HasSubstr("127.0.0.1"));
}

TEST(ClockExchange, AStrangerGetsNothing) {
  const auto server = serving();
  SystemClock clock;
  auto wrong = server->address();
  wrong.addresses = {"127.0.0.1"};
  wrong.asker.back() = wrong.asker.back() == '0' ? '1' : '0';
  EXPECT_FALSE(ask_clock(wrong, clock, 1s));
  auto short_one = server->address();
  short_one.addresses = {"127.0.0.1"};
  short_one.asker.pop_back();
  EXPECT_FALSE(ask_clock(short_one, clock, 1s));
}

TEST(ClockExchange, AStrangersClockIsNotBelieved) {
  const auto server = serving();
  SystemClock clock;
  auto expects_another = server->address();
  expects_another.addresses = {"127.0.0.1"};
  expects_another.answerer.back() = expects_another.answerer.back() == '0' ? '1' : '0';
  const auto offset = ask_clock(expects_another, clock, 1s);
  ASSERT_FALSE(offset);
  EXPECT_EQ(offset.error().code, ErrorCode::corrupt);
}

int connected(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return fd;
}

TEST(ClockExchange, GarbageAndSilenceLeaveTheServerServing) {
  const auto server = serving();
  SystemClock clock;
  std::vector<int> held;
  for (int i = 0; i < 40; ++i) held.push_back(connected(server->address().port));
  const std::string garbage(100'000, 'x');
  for (std::size_t i = 0; i < 20; ++i) {
    [[maybe_unused]] const auto n = ::send(held[i], garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  EXPECT_TRUE(ask_clock(server->address(), clock, 2s));
  for (const int fd : held) ::close(fd);
}

TEST(ClockExchange, AddressesSurviveTheirFile) {
  const auto server = serving();
  const auto back = clock_address_from_json(clock_address_to_json(server->address()), "clock.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->addresses, server->address().addresses);
  EXPECT_EQ(back->port, server->address().port);
  EXPECT_EQ(back->asker, server->address().asker);
  EXPECT_EQ(back->answerer, server->address().answerer);
  EXPECT_EQ(back->machine_clock, "reference");
  EXPECT_NE(back->asker, serving()->address().asker) << "each run has a secret of its own";
  for (const char* text : {"", "{}", R"({"schema":"ergometer.clock/1","port":99999,"asker":"a","answerer":"b"})",
                           R"({"schema":"ergometer.clock/1","port":5})"})
    EXPECT_FALSE(clock_address_from_json(text, "clock.json")) << text;
}

// The asking process in a time namespace whose monotonic clock is 1000 s ahead, as `unshare -T` makes it.
TEST(ClockExchange, BetweenTimeNamespaces) {
  const auto server = serving();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::unshare(0x80 /* CLONE_NEWTIME */) != 0) ::_exit(77);
    std::ofstream("/proc/self/timens_offsets") << "monotonic 1000 0\n" << std::flush;
    // Children of this process live in the new namespace.
    const pid_t inner = ::fork();
    if (inner == 0) {
      SystemClock clock;
      const auto offset = ask_clock(server->address(), clock, 5s);
      if (!offset) ::_exit(1);
      const std::int64_t told[2] = {offset->offset.count(), offset->error.count()};
      ::_exit(::write(ends[1], told, sizeof told) == sizeof told ? 0 : 1);
    }
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WEXITSTATUS(status));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::close(ends[1]);
  std::int64_t told[2] = {};
  const bool got = ::read(ends[0], told, sizeof told) == sizeof told;
  ::close(ends[0]);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no time namespace can be made here";
  ASSERT_TRUE(got) << "exit status " << status;
  EXPECT_LE(std::abs(told[0] + 1'000'000'000'000), told[1]) << "t_reference = t_own + offset";
}

// --- ClockWatch

void write_address(const TempDir& run, const ClockServer& server) {
  run.write("clock.json", clock_address_to_json(server.address()));
}

ClockWatch::Where place_in(const TempDir& run, const char* machine) { return {run.path(), "n1", machine}; }

TEST(ClockWatch, TheSameClockNeedsNoExchange) {
  TempDir run;
  const auto server = serving();
  write_address(run, *server);
  ClockWatch watch(place_in(run, "reference"), std::make_shared<SystemClock>(), [](const ClockLink&) {});
  const auto outcome = watch.stop();
  EXPECT_EQ(outcome.link.method, ClockLink::Method::same);
  EXPECT_EQ(outcome.link.reference, "n1");
  EXPECT_TRUE(outcome.link.offsets.empty());
  EXPECT_TRUE(outcome.warnings.empty());
}

TEST(ClockWatch, AsksAtTheStartAndAtTheEnd) {
  TempDir run;
  const auto server = serving(50s);
  write_address(run, *server);
  std::atomic<int> taken{0};
  ClockWatch watch(place_in(run, "other"), std::make_shared<SystemClock>(), [&](const ClockLink&) { ++taken; });
  for (int i = 0; i < 1000 && taken == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(taken, 1);
  const auto outcome = watch.stop();
  EXPECT_EQ(outcome.link.method, ClockLink::Method::exchange);
  ASSERT_EQ(outcome.link.offsets.size(), 2U);
  EXPECT_LT(outcome.link.offsets[0].at, outcome.link.offsets[1].at);
  for (const auto& offset : outcome.link.offsets)
    EXPECT_LE(std::abs((offset.offset - 50s).count()), offset.error.count());
  EXPECT_TRUE(outcome.warnings.empty());
}

TEST(ClockWatch, AnAddressThatComesLaterIsFound) {
  TempDir run;
  std::atomic<int> taken{0};
  ClockWatch watch(place_in(run, "other"), std::make_shared<SystemClock>(), [&](const ClockLink&) { ++taken; });
  std::this_thread::sleep_for(100ms);
  const auto server = serving(50s);
  write_address(run, *server);
  for (int i = 0; i < 1000 && taken == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_GE(taken, 1);
}

Manifest reference_part(Clock& clock) {
  Manifest part;
  part.place = Place{};
  part.place->node = "n1";
  part.clocks = {{clock.now(), clock.wall(), clock.wall_error()}};
  return part;
}

TEST(ClockWatch, OutOfReachTheWallClocksDecide) {
  TempDir run;
  ShiftedClock reference(70s, 3ms);
  run.write("nodes/n1/part.json", part_to_json(reference_part(reference)));
  ClockWatch watch(place_in(run, "other"), std::make_shared<ShiftedClock>(0s, 2ms), [](const ClockLink&) {});
  const auto outcome = watch.stop();
  EXPECT_EQ(outcome.link.method, ClockLink::Method::wall);
  ASSERT_EQ(outcome.link.offsets.size(), 1U);
  EXPECT_LE(std::abs((outcome.link.offsets[0].offset - 70s).count()), outcome.link.offsets[0].error.count());
  EXPECT_EQ(outcome.link.offsets[0].error, 5ms);
  ASSERT_EQ(outcome.warnings.size(), 1U);
  EXPECT_EQ(outcome.warnings[0].code, "clock-exchange");
}

TEST(ClockWatch, AnUndisciplinedWallClockIsSaidToBeOne) {
  TempDir run;
  ShiftedClock reference(70s);
  run.write("nodes/n1/part.json", part_to_json(reference_part(reference)));
  ClockWatch watch(place_in(run, "other"), std::make_shared<ShiftedClock>(0s, 2ms), [](const ClockLink&) {});
  const auto outcome = watch.stop();
  ASSERT_EQ(outcome.link.offsets.size(), 1U);
  EXPECT_EQ(outcome.link.offsets[0].error, 16s + 2ms);
  ASSERT_EQ(outcome.warnings.size(), 2U);
  EXPECT_EQ(outcome.warnings[1].code, "clock-unsynchronised");
}

TEST(ClockWatch, WithoutAnyReferenceTheOffsetIsUnknown) {
  TempDir run;
  ClockWatch watch(place_in(run, "other"), std::make_shared<SystemClock>(), [](const ClockLink&) {});
  const auto outcome = watch.stop();
  EXPECT_EQ(outcome.link.method, ClockLink::Method::wall);
  EXPECT_TRUE(outcome.link.offsets.empty());
}

}  // namespace
}  // namespace ergometer::test
