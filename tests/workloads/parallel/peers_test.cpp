#include "parallel/peers.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ergometer::workload {
namespace {

TEST(Peers, CountsAZombieAsLostAndNotThoseOfOtherMachines) {
  const pid_t zombie = ::fork();
  if (zombie == 0) ::_exit(0);
  const std::string own = Peers::own_identity();
  const std::string machine = own.substr(0, own.rfind(' '));
  const Peers peers({own, machine + " " + std::to_string(zombie), "elsewhere/pid:[1] 999999999"});
  EXPECT_EQ(peers.lost(), std::vector<int>{1});
  EXPECT_EQ(peers.describe({0, 1}),
            "rank 0 (process " + std::to_string(::getpid()) + ") and rank 1 (process " + std::to_string(zombie) + ")");
  EXPECT_FALSE(peers.one_machine());
  ::waitpid(zombie, nullptr, 0);
}

TEST(Peers, KnowsThatAllAreOnThisMachine) {
  const std::string own = Peers::own_identity();
  const Peers peers({own, own});
  EXPECT_TRUE(peers.one_machine());
  EXPECT_TRUE(peers.lost().empty());
}

}  // namespace
}  // namespace ergometer::workload
