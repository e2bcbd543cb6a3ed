// Who is on the other side of a connection, and what they may. The kernel's word counts (SO_PEERCRED, SO_PEERGROUPS),
// nothing that the client says. Used by Server and what it asks.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"

namespace ergometer::daemon {

struct Peer {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary ones
  pid_t pid = 0;              // 0: in another pid namespace
};

// For people: "ada (PID 4711)", "user 1001" for one whom the system does not know.
[[nodiscard]] std::string name_of(const Peer& peer);

// Of a connected Unix socket. Errors: io.
[[nodiscard]] Result<Peer> peer_of(int fd);

// Those who may something beside root.
struct People {
  std::vector<uid_t> users;
  std::vector<gid_t> groups;
  std::string remedy;  // told to whom is refused
};

[[nodiscard]] bool is_among(const Peer& peer, const People& people);

// Names to numbers by the system's user database; numbers stay as they are. Names that nobody has come back in
// `unknown`. `key` is how the list of users is called in the configuration.
[[nodiscard]] People resolve_people(const std::vector<std::string>& users, const std::vector<std::string>& groups,
                                    const char* key, std::vector<std::string>& unknown);

}  // namespace ergometer::daemon
