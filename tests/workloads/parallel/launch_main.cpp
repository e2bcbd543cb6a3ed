// One rank of the tests of run_ranks: parallel_launch SCENARIO ARGUMENT...; with --ranks N first, their launcher.
// Without LibTorch, which takes most of a second to load.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "parallel/rank.hpp"

namespace {

using ergometer::workload::Error;
using ergometer::workload::Rank;

int report(const Error& error) {
  std::cerr << error.message << "\nhint: " << error.hint << '\n';
  return 9;
}

void sleep_long() { std::this_thread::sleep_for(std::chrono::seconds(600)); }

void show(const Rank& rank, const std::vector<std::string>& words) {
  std::cout << "rank " << rank.rank << " of " << rank.size << " by " << rank.launcher << ", threads "
            << std::getenv("OMP_NUM_THREADS") << ':';
  for (const std::string& word : words) std::cout << ' ' << word;
  std::cout << std::endl;
}

int scenario(const std::vector<std::string>& words) {
  const auto rank = ergometer::workload::rank_from_environment();
  if (!rank) return report(rank.error());
  const auto number = [&](std::size_t index) { return std::atoi(words.at(index).c_str()); };
  if (words.at(0) == "show") {
    show(*rank, words);
    return 0;
  }
  if (words.at(0) == "exit") {  // RANK CODE
    if (rank->rank == number(1)) return number(2);
    sleep_long();
  }
  if (words.at(0) == "raise") {  // RANK SIGNAL; the others do not heed SIGTERM
    ::signal(SIGTERM, SIG_IGN);
    if (rank->rank == number(1)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::raise(number(2));
    }
    sleep_long();
  }
  if (words.at(0) == "sleep") {  // FOLDER: tells its process number there
    std::ofstream(words.at(1) + "/rank" + std::to_string(rank->rank)) << ::getpid() << std::endl;
    sleep_long();
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.at(0) != "--ranks") return scenario(words);
  const auto code = ergometer::workload::run_ranks(std::atoi(words.at(1).c_str()), words, std::cerr);
  return code ? *code : report(code.error());
}
