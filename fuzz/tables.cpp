// regions.csv, events.csv and base's CSV reader. What is read and written again must read back as the same.
#include "base/csv.hpp"
#include "store/run_tables.hpp"
#include "target.hpp"

using namespace ergometer;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz_text(data, size);
  std::vector<Warning> warnings;
  const auto regions = parse_regions(text, "input", warnings);
  std::string again = kRegionsHeader;
  for (const auto& region : regions) append_region_line(again, region);
  warnings.clear();
  const auto back = parse_regions(again, "input", warnings);
  fuzz_check(warnings.empty() && back.size() == regions.size());
  for (std::size_t i = 0; i < back.size(); ++i) {
    fuzz_check(back[i].path == regions[i].path && back[i].attributes == regions[i].attributes);
    fuzz_check(back[i].cut == regions[i].cut && back[i].begin == regions[i].begin && back[i].end == regions[i].end);
  }
  (void)parse_events(text, "input", warnings);
  (void)parse_csv(text, "input");
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {std::string(kRegionsHeader) +
              "1,2,3,4,,train/epoch[3],loss=0.25;a\\;b=c\\=d\n5,6,7,8,9,\"a\"\"b,\nc\",cut=true;\\cut=1\n",
          "path,t_end_ns,t_begin_ns\r\na,20,10\r\n\"b\",2,1",
          std::string(kEventsHeader) + "1,gpu0,gap,\"a, b\"\n2,,note,\n"};
}
