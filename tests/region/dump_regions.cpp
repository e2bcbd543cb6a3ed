// Prints the regions of the marker files in a folder as regions.csv, for tests in other languages.
#include <cstdio>

#include "store/marker_log.hpp"
#include "store/run_tables.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  ergometer::MarkerLog log(argv[1]);
  log.poll();
  std::string text = ergometer::kRegionsHeader;
  for (const auto& region : log.regions(ergometer::mono_ns(0))) ergometer::append_region_line(text, region);
  std::fputs(text.c_str(), stdout);
  return log.damaged() == 0 ? 0 : 1;
}
