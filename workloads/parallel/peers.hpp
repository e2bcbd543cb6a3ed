// Who the other ranks are, to say which one was lost when a collective operation fails: c10d names a connection, not a
// rank. Used by group.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ergometer::workload {

class Peers {
 public:
  // This process in one line, "MACHINE PROCESS"; machines differ in boot or in process numbers (containers).
  static std::string own_identity();

  // Identities in the order of ranks, this process's among them.
  explicit Peers(const std::vector<std::string>& identities);

  bool one_machine() const;
  // Ranks of this machine whose process has ended; waits up to a second for the first, since a process's connections
  // close a moment before it counts as ended.
  std::vector<int> lost() const;
  // "rank 1 (process 4711) and rank 2 (process 4712)".
  std::string describe(const std::vector<int>& ranks) const;

 private:
  struct Peer {
    std::string machine;
    long process = 0;
  };
  std::vector<int> ended() const;

  std::vector<Peer> peers_;
  std::string own_machine_;
};

// "rank 1", "rank 1 and rank 2", "rank 1, rank 2 and rank 3".
std::string join_words(const std::vector<std::string>& words);

}  // namespace ergometer::workload
