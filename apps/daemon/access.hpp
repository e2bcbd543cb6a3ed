// Who is on the other side of a connection, and whether they may read. The kernel's word counts (SO_PEERCRED,
// SO_PEERGROUPS), nothing that the client says. Used by Server.
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
};

// Of a connected Unix socket. Errors: io.
[[nodiscard]] Result<Peer> peer_of(int fd);

// Those who may read beside root.
struct Readers {
  std::vector<uid_t> users;
  std::vector<gid_t> groups;
  std::string remedy;  // told to whom is refused
};

[[nodiscard]] bool may_read(const Peer& peer, const Readers& readers);

// Names to numbers by the system's user database; numbers stay as they are. Names that nobody has come back in
// `unknown`.
[[nodiscard]] Readers resolve_readers(const std::vector<std::string>& users, const std::vector<std::string>& groups,
                                      std::vector<std::string>& unknown);

}  // namespace ergometer::daemon
