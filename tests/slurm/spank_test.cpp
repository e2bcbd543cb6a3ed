// What the Slurm plugin does with text: its options and paths, and its notes to ergometerd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "slurm/daemon_note.hpp"
#include "slurm/options.hpp"
#include "support/temp_dir.hpp"

namespace ergometer::spank {
namespace {

TEST(SpankOptions, OfAStep) {
  StepOptions options;
  ASSERT_TRUE(read_step_options("", options));
  ASSERT_TRUE(read_step_options("(null)", options));  // of srun in a script that was submitted with --ergometer alone
  EXPECT_TRUE(options.measure);
  ASSERT_TRUE(read_step_options("dir=/scratch/%u/%j,interval=50ms,sensors=nvml+rapl", options));
  EXPECT_EQ(options.folder, "/scratch/%u/%j");
  EXPECT_EQ(options.interval, "50ms");
  EXPECT_EQ(options.sensors, "nvml,rapl");
  ASSERT_TRUE(read_step_options("off", options));
  EXPECT_FALSE(options.measure);
}

TEST(SpankOptions, WhatIsWrongIsNamedWithTheNearest) {
  StepOptions options;
  const auto unknown = read_step_options("intervall=5s", options);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("intervall"));
  EXPECT_THAT(unknown.error().hint, testing::HasSubstr("interval"));
  for (const auto* text :
       {"interval=5", "interval=0s", "interval=2h", "interval", "dir=", "dir=here", "off=1", "on,", "sensors="})
    EXPECT_FALSE(read_step_options(text, options)) << text;
}

TEST(SpankOptions, OfTheSite) {
  SiteOptions options;
  ASSERT_TRUE(read_site_options({"default=on", "dir=/data/%u/%j/%s", "host_root=/roots/%n", "jobs=off", "exclusive=on"},
                                options));
  EXPECT_TRUE(options.by_default);
  EXPECT_FALSE(options.tell_daemon);
  EXPECT_TRUE(options.exclusive);
  const auto wrong = read_site_options({"defualt=on"}, options);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().hint, testing::HasSubstr("default"));
  EXPECT_FALSE(read_site_options({"default=yes"}, options));
}

TEST(SpankOptions, PathsAreFilledIn) {
  const Place place{"/home/ada", "ada", "12", "0", "n1"};
  EXPECT_EQ(fill_in("%h/ergometer-jobs/%j/%s", place), "/home/ada/ergometer-jobs/12/0");
  EXPECT_EQ(fill_in("/roots/%n-%u", place), "/roots/n1-ada");
  EXPECT_FALSE(fill_in("%x/a", place));
  EXPECT_FALSE(fill_in("/a/%", place));
  EXPECT_FALSE(fill_in("%h/a", Place{"", "ada", "12", "0", "n1"}));  // a user without a home
  EXPECT_FALSE(fill_in("%u/a", place));                              // not absolute
}

// A daemon that says `greeting`, takes a line and says `answer`; "" says nothing.
class FakeDaemon {
 public:
  FakeDaemon(std::string path, std::string greeting, std::string answer) : path_(std::move(path)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    fd_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    thread_ = std::thread([this, greeting, answer] {
      const int client = ::accept(fd_, nullptr, nullptr);
      if (!greeting.empty()) (void)!::write(client, greeting.data(), greeting.size());
      char buffer[512];
      const auto n = ::read(client, buffer, sizeof buffer);
      if (n > 0) heard_.assign(buffer, static_cast<std::size_t>(n));
      if (!answer.empty()) (void)!::write(client, answer.data(), answer.size());
      ::close(client);
    });
  }
  std::string heard() {
    thread_.join();
    ::close(fd_);
    return heard_;
  }

 private:
  std::string path_, heard_;
  int fd_ = -1;
  std::thread thread_;
};

TEST(DaemonNote, AJobsBeginAndEnd) {
  EXPECT_EQ(begin_line({"12", 1000, "ada", false}), "{\"job_begin\":{\"job\":\"12\",\"uid\":1000,\"user\":\"ada\"}}\n");
  EXPECT_EQ(begin_line({"12", 1000, "a\"b\n", true}),
            "{\"job_begin\":{\"job\":\"12\",\"uid\":1000,\"user\":\"a\\\"b\",\"exclusive\":true}}\n");
  test::TempDir dir;
  const auto socket = (dir.path() / "s").string();
  FakeDaemon daemon(socket, "{\"schema\":\"ergometer.daemon/1\"}\n", "{\"ok\":true}\n");
  EXPECT_EQ(tell_daemon(socket, end_line("12")), "");
  EXPECT_EQ(daemon.heard(), "{\"job_end\":{\"job\":\"12\"}}\n");
}

TEST(DaemonNote, NoDaemonIsNoTroubleAndASilentOneDoesNotHoldTheJob) {
  test::TempDir dir;
  EXPECT_EQ(tell_daemon((dir.path() / "none").string(), end_line("12")), "");
  const auto socket = (dir.path() / "s").string();
  FakeDaemon daemon(socket, "", "");
  EXPECT_THAT(tell_daemon(socket, end_line("12")), testing::HasSubstr("does not answer"));
  EXPECT_EQ(daemon.heard(), "");
}

TEST(DaemonNote, ARefusalIsTold) {
  test::TempDir dir;
  const auto socket = (dir.path() / "s").string();
  FakeDaemon daemon(socket, "{\"schema\":\"ergometer.daemon/1\"}\n", "{\"error\":{\"code\":\"permission_denied\"}}\n");
  EXPECT_THAT(tell_daemon(socket, end_line("12")), testing::HasSubstr("permission_denied"));
  daemon.heard();
}

}  // namespace
}  // namespace ergometer::spank
