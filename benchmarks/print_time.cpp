// Prints the monotonic clock, in nanoseconds, at the moment a command begins. Used by bench.py to see how much later a
// command starts under `ergometer run`.
#include <cstdio>
#include <ctime>

int main() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("%lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
}
