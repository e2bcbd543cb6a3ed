#include "parallel/group.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "parallel/gradient_buckets.hpp"
#include "processes.hpp"
#include "toy_network.hpp"

namespace ergometer::workload {
namespace {

using test::Process;
using test::TempDir;

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

// The ranks of a scenario, started as torchrun does.
std::vector<std::unique_ptr<Process>> start(int size, const std::vector<std::string>& scenario, const TempDir& folder) {
  const std::string port = std::to_string(free_port());
  std::vector<std::string> words = {ERGOMETER_RANK_PROGRAM};
  words.insert(words.end(), scenario.begin(), scenario.end());
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    const std::string number = std::to_string(rank);
    ranks.push_back(std::make_unique<Process>(words,
                                              std::map<std::string, std::string>{{"RANK", number},
                                                                                 {"WORLD_SIZE", std::to_string(size)},
                                                                                 {"LOCAL_RANK", number},
                                                                                 {"MASTER_ADDR", "127.0.0.1"},
                                                                                 {"MASTER_PORT", port}},
                                              folder, "rank" + number));
  }
  return ranks;
}

// Gradients of the second pass of rank 0's network over all ranks' samples, by one process without any group.
std::vector<torch::Tensor> whole_batch_gradients(int ranks) {
  test::ToyNetwork network = test::make_toy(100);
  test::toy_loss(network, 1, 0, 3 * ranks).backward();
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : network->parameters()) {
    if (!parameter.requires_grad()) continue;
    gradients.push_back(parameter.grad().defined() ? parameter.grad() : torch::zeros_like(parameter));
  }
  return gradients;
}

void expect_whole_batch(const std::string& file, int ranks) {
  std::vector<torch::Tensor> found;
  torch::load(found, file);
  const std::vector<torch::Tensor> expected = whole_batch_gradients(ranks);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(torch::allclose(found[i], expected[i], 1e-9, 1e-12)) << "gradient " << i << " of " << ranks << " ranks";
  }
  EXPECT_GT(torch::stack({found[1].abs().max(), found[3].abs().max(), found[5].abs().max()}).min().item<double>(),
            1e-6);
}

class Gradients : public testing::TestWithParam<int> {};

TEST_P(Gradients, OfSeveralRanksAreThoseOfOneWithTheWholeBatch) {
  const int size = GetParam();
  const TempDir folder;
  const std::string file = (folder / "gradients").string();
  auto ranks = start(size, {"gradients", file}, folder);
  for (auto& rank : ranks) ASSERT_EQ(rank->wait(), 0) << rank->err();
  expect_whole_batch(file, size);
  const double sum = size * (size - 1) / 2.0 + 0.5 * size;
  std::ostringstream line;
  line << size << ' ' << sum << " torchrun\n";
  EXPECT_EQ(ranks.front()->out(), line.str());
}

INSTANTIATE_TEST_SUITE_P(Ranks, Gradients, testing::Values(1, 2, 4));

TEST(Group, WorksUnderOpenMpi) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) GTEST_SKIP() << "mpirun is not installed";
  const TempDir folder;
  const std::string file = (folder / "gradients").string();
  Process mpirun(
      {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", ERGOMETER_RANK_PROGRAM, "gradients", file}, {},
      folder, "mpirun");
  ASSERT_EQ(mpirun.wait(), 0) << mpirun.err();
  EXPECT_EQ(mpirun.out(), "2 2 Open MPI\n");
  expect_whole_batch(file, 2);
}

TEST(Group, NamesTheRankThatWasKilledAndEnds) {
  const TempDir folder;
  auto ranks = start(3, {"lose", "1"}, folder);
  EXPECT_EQ(ranks[1]->wait(), 128 + SIGKILL);
  for (const std::size_t survivor : {0U, 2U}) {
    EXPECT_EQ(ranks[survivor]->wait(), 9) << "rank " << survivor << ": " << ranks[survivor]->err();
    const std::string message = ranks[survivor]->err();
    EXPECT_NE(message.find("rank " + std::to_string(survivor) + " lost "), std::string::npos) << message;
    EXPECT_NE(message.find("rank 1 (process " + std::to_string(ranks[1]->id()) + ")"), std::string::npos) << message;
  }
}

TEST(Group, NamesTheRankThatDidNotCome) {
  Rank rank;
  rank.size = 3;
  rank.port = free_port();
  const auto group = Group::join(rank, torch::kCPU, 2);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().message,
            "rank 1 and rank 2 of 3 did not come to 127.0.0.1:" + std::to_string(rank.port) + " within 2 s");
}

TEST(Group, NamesTheAddressWhereRank0DoesNotAnswer) {
  Rank rank;
  rank.rank = 1;
  rank.size = 2;
  rank.port = free_port();
  const auto group = Group::join(rank, torch::kCPU, 1);
  ASSERT_FALSE(group);
  EXPECT_NE(group.error().message.find("rank 0 did not answer on 127.0.0.1:" + std::to_string(rank.port)),
            std::string::npos)
      << group.error().message;
}

TEST(Group, SaysThatThePortIsTaken) {
  const int fd = ::socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_any;
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  Rank rank;
  rank.size = 2;
  rank.port = ntohs(address.sin6_port);
  const auto group = Group::join(rank, torch::kCPU, 1);
  ::close(fd);
  ASSERT_FALSE(group);
  EXPECT_NE(group.error().message.find("rank 0 cannot listen on"), std::string::npos) << group.error().message;
}

TEST(Group, AloneLeavesEverythingAsItIs) {
  auto group = Group::join(Rank{}, torch::kCPU);
  ASSERT_TRUE(group);
  test::ToyNetwork network = test::make_toy(100);
  ASSERT_TRUE((*group)->average_gradients_of(network->parameters()));
  EXPECT_FALSE(network->head->weight.grad().defined());
  EXPECT_EQ(*(*group)->sum({2.5}), std::vector<double>{2.5});
}

}  // namespace
}  // namespace ergometer::workload
