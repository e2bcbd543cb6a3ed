#include "daemon_note.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/file.hpp"

namespace ergometer::spank {
namespace {

using Steady = std::chrono::steady_clock;
using namespace std::chrono_literals;
constexpr std::size_t kLongest = 64 << 10;  // of an answer to a note

// Names of users and jobs are plain words; whatever else is in one does not leave its quotes.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

bool wait_for(int fd, short what, Steady::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Steady::now()).count();
  pollfd wait{fd, what, 0};
  return left > 0 && ::poll(&wait, 1, static_cast<int>(left)) > 0;
}

// The next line that the daemon says; "" if none comes in time.
std::string line_of(int fd, std::string& buffer, Steady::time_point end) {
  for (;;) {
    if (const auto at = buffer.find('\n'); at != std::string::npos) {
      auto line = buffer.substr(0, at);
      buffer.erase(0, at + 1);
      return line;
    }
    if (buffer.size() > kLongest || !wait_for(fd, POLLIN, end)) return {};
    std::array<char, 4096> bytes{};
    const auto n = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return {};
    if (n > 0) buffer.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

std::string begin_line(const JobNote& note) {
  return "{\"job_begin\":{\"job\":" + quoted(note.job) + ",\"uid\":" + std::to_string(note.uid) +
         ",\"user\":" + quoted(note.user) + (note.exclusive ? ",\"exclusive\":true" : "") + "}}\n";
}

std::string end_line(const std::string& job) { return "{\"job_end\":{\"job\":" + quoted(job) + "}}\n"; }

std::string tell_daemon(const std::string& socket, const std::string& line) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return socket + " is too long for a socket";
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return {};
  const auto end = Steady::now() + 500ms;
  std::string trouble, buffer;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    // Nobody there is a site's choice; anything else is worth a line.
    if (errno != ENOENT && errno != ECONNREFUSED) trouble = errno_error("reach", socket, errno).message;
  } else if (const auto greeting = line_of(fd, buffer, end); greeting.find("\"error\"") != std::string::npos) {
    trouble = "ergometerd answers " + greeting;
  } else if (greeting.empty()) {
    trouble = "ergometerd at " + socket + " does not answer";
  } else if (!wait_for(fd, POLLOUT, end) ||
             ::send(fd, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) {
    trouble = "ergometerd at " + socket + " does not listen";
  } else if (const auto answer = line_of(fd, buffer, end); answer.empty()) {
    trouble = "ergometerd at " + socket + " does not answer";
  } else if (answer.find("\"error\"") != std::string::npos) {
    trouble = "ergometerd answers " + answer;
  }
  close_fd(fd);
  return trouble;
}

}  // namespace ergometer::spank
