#include "parallel/peers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/text.hpp"

namespace ergometer::workload {
namespace {

std::string machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  return boot + "/" + std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
}

// Gone, or a zombie that its parent has not asked after. The state follows the name, which may hold anything but ends
// with the line's last parenthesis (proc(5)).
bool has_ended(long process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  if (!std::getline(file, line)) return true;
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  return state == 'Z' || state == 'X';
}

}  // namespace

std::string join_words(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

std::string Peers::own_identity() { return fmt::format("{} {}", machine(), ::getpid()); }

Peers::Peers(const std::vector<std::string>& identities) : own_machine_(machine()) {
  for (const std::string& identity : identities) {
    const std::size_t space = identity.rfind(' ');
    const auto process = parse_integer(std::string_view(identity).substr(space + 1));
    peers_.push_back({identity.substr(0, space), process ? static_cast<long>(*process) : 0});
  }
}

bool Peers::one_machine() const {
  for (const Peer& peer : peers_) {
    if (peer.machine != own_machine_) return false;
  }
  return true;
}

std::vector<int> Peers::ended() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank].machine == own_machine_ && has_ended(peers_[rank].process))
      ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<int> Peers::lost() const {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(1);
  std::vector<int> ranks = ended();
  while (ranks.empty() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ranks = ended();
  }
  return ranks;
}

std::string Peers::describe(const std::vector<int>& ranks) const {
  std::vector<std::string> words;
  for (const int rank : ranks) {
    words.push_back(fmt::format("rank {} (process {})", rank, peers_[static_cast<std::size_t>(rank)].process));
  }
  return join_words(words);
}

}  // namespace ergometer::workload
