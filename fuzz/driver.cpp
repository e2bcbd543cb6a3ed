// Runs a fuzz target without libFuzzer: over its seeds and over mutations of them that are the same each time.
//   fuzz_X               about a second of mutations
//   fuzz_X FILE...       the inputs in these files
//   fuzz_X --corpus DIR  writes the seeds as files into DIR
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "target.hpp"

namespace {

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

void mutate(std::string& input, const std::vector<std::string>& seeds, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const auto changes = 1 + below(4);
  for (std::size_t i = 0; i < changes; ++i) {
    const auto at = below(input.size() + 1);
    switch (below(6)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(random());
        break;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 2:
        input.resize(at);
        break;
      case 3:
        input.insert(at, 1 + below(8), static_cast<char>(random()));
        break;
      case 4:
        input.erase(at, 1 + below(16));
        break;
      default: {
        const std::string& other = seeds[below(seeds.size())];
        const auto from = below(other.size());
        input.insert(at, other, from, 1 + below(64));
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto seeds = fuzz_seeds();
  if (argc == 3 && std::string(argv[1]) == "--corpus") {
    for (std::size_t i = 0; i < seeds.size(); ++i)
      std::ofstream(std::string(argv[2]) + "/seed" + std::to_string(i), std::ios::binary) << seeds[i];
    return 0;
  }
  if (argc > 1) {
    for (int i = 1; i < argc; ++i) {
      std::ifstream file(argv[i], std::ios::binary);
      run({std::istreambuf_iterator<char>(file), {}});
    }
    return 0;
  }
  run("");
  for (const auto& seed : seeds) run(seed);
  std::mt19937 random(1);
  // The inputs are the same each time; how many of them depends on the machine.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::size_t count = 0;
  for (; std::chrono::steady_clock::now() < end && count < 20000; ++count) {
    std::string input = seeds[random() % seeds.size()];
    mutate(input, seeds, random);
    run(input);
  }
  std::printf("%zu inputs\n", count);
  return 0;
}
