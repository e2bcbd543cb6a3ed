// What a marker pair costs, active and inactive. The active case runs in a temporary run directory; beside the marker
// it pays for fresh pages of the file, one in 64 pairs.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "ergometer/region.h"

namespace {

void pair_of_markers(benchmark::State& state) {
  for (auto _ : state) {
    const ergometer_region region = ergometer_begin_indexed("step", 17);
    benchmark::DoNotOptimize(region);
    ergometer_end(region);
  }
  if (ergometer_state_ != -1 && ergometer_state_ != 1) state.SkipWithError("markers have not started");
}

}  // namespace

// A process decides once whether it marks: ERGOMETER_BENCH_INACTIVE=1 measures the other case.
int main(int argc, char** argv) {
  std::string folder = (std::filesystem::temp_directory_path() / "ergometer-bench-XXXXXX").string();
  const bool inactive = ::getenv("ERGOMETER_BENCH_INACTIVE") != nullptr;
  if (inactive) {
    ::unsetenv("ERGOMETER_RUN");
  } else {
    if (!::mkdtemp(folder.data())) return 1;
    ::setenv("ERGOMETER_RUN", folder.c_str(), 1);
  }
  benchmark::RegisterBenchmark(inactive ? "marker_pair/inactive" : "marker_pair/active", pair_of_markers);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  if (!inactive) std::filesystem::remove_all(folder);
  return 0;
}
