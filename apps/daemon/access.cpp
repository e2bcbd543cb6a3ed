#include "daemon/access.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/file.hpp"
#include "base/number.hpp"

namespace ergometer::daemon {
namespace {

constexpr std::size_t kMostGroups = 65536;  // NGROUPS_MAX of Linux

// getpwnam_r or getgrnam_r: the record of a name, if anybody has it.
template <class Record, class Id>
std::optional<Id> id_of(const std::string& name, int (*find)(const char*, Record*, char*, std::size_t, Record**),
                        Id Record::*member) {
  if (const auto number = parse_uint(name); number && *number < UINT32_MAX) return static_cast<Id>(*number);
  Record record{};
  Record* found = nullptr;
  std::vector<char> buffer(4096);
  int failed = 0;
  while ((failed = find(name.c_str(), &record, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < (1u << 22))
    buffer.resize(buffer.size() * 2);
  if (failed != 0 || !found) return std::nullopt;
  return record.*member;
}

}  // namespace

Result<Peer> peer_of(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return tl::unexpected(errno_error("ask who is at", "a connection", errno));
  Peer peer{credentials.uid, credentials.gid, std::vector<gid_t>(64), credentials.pid};
  for (;;) {
    size = static_cast<socklen_t>(peer.groups.size() * sizeof(gid_t));
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &size) == 0) break;
    const std::size_t needed = size / sizeof(gid_t);
    if (errno != ERANGE || needed <= peer.groups.size() || needed > kMostGroups)
      return tl::unexpected(errno_error("ask for the groups of", "a connection", errno));
    peer.groups.resize(needed);
  }
  peer.groups.resize(size / sizeof(gid_t));
  return peer;
}

std::string name_of(const Peer& peer) {
  passwd record{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer;
  const bool known = ::getpwuid_r(peer.uid, &record, buffer.data(), buffer.size(), &found) == 0 && found;
  auto name = known ? std::string(found->pw_name) : fmt::format("user {}", peer.uid);
  return peer.pid > 0 ? fmt::format("{} (PID {})", name, peer.pid) : name;
}

bool is_among(const Peer& peer, const People& people) {
  if (peer.uid == 0 || std::ranges::count(people.users, peer.uid) > 0) return true;
  return std::ranges::any_of(people.groups, [&](gid_t group) {
    return group == peer.gid || std::ranges::count(peer.groups, group) > 0;
  });
}

People resolve_people(const std::vector<std::string>& users, const std::vector<std::string>& groups, const char* key,
                      std::vector<std::string>& unknown) {
  People people;
  for (const auto& name : users)
    if (const auto uid = id_of<passwd, uid_t>(name, &::getpwnam_r, &passwd::pw_uid))
      people.users.push_back(*uid);
    else
      unknown.push_back("user " + name);
  for (const auto& name : groups)
    if (const auto gid = id_of<group, gid_t>(name, &::getgrnam_r, &group::gr_gid))
      people.groups.push_back(*gid);
    else
      unknown.push_back("group " + name);
  people.remedy = groups.empty() ? fmt::format("ask the administrator to name you in {} of ergometerd.toml", key)
                                  : fmt::format("sudo usermod -aG {} $USER, then log in again", groups.front());
  return people;
}

}  // namespace ergometer::daemon
