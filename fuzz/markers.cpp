// Marker files, read in two steps as of a process that still writes.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "region/record.hpp"
#include "store/marker_log.hpp"
#include "store/run_tables.hpp"
#include "target.hpp"

using namespace ergometer;
using marker::Record;

namespace {

const std::filesystem::path& folder() {
  static const std::filesystem::path path = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "ergometer-fuzz-XXXXXX").string();
    fuzz_check(::mkdtemp(pattern.data()) != nullptr);
    std::atexit([] { std::filesystem::remove_all(folder()); });
    return std::filesystem::path(pattern);
  }();
  return path;
}

Record record(marker::Kind kind, std::int64_t t_ns, const std::string& text) {
  Record out{};
  out.kind = kind;
  out.tid = 7;
  out.t_ns = t_ns;
  out.index = marker::kNoIndex;
  out.length = static_cast<std::uint8_t>(text.size());
  std::memcpy(out.text, text.data(), text.size());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz_text(data, size);
  const auto file = folder() / "host-7-1.erg";
  std::filesystem::remove(file);
  MarkerLog log(folder());
  for (const auto part : {bytes.substr(0, size / 2), bytes.substr(size / 2)}) {
    std::ofstream(file, std::ios::binary | std::ios::app) << part;
    log.poll();
    (void)log.current();
  }
  std::string text = kRegionsHeader;
  const auto regions = log.regions(mono_ns(100));
  for (const auto& region : regions) {
    fuzz_check(region.begin <= region.end && !region.path.empty());
    append_region_line(text, region);
  }
  std::vector<Warning> warnings;
  fuzz_check(parse_regions(text, "input", warnings).size() == regions.size());
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<Record> records(1);
  marker::Header header{};
  std::memcpy(header.magic, marker::kMagic, sizeof marker::kMagic);
  header.record_bytes = marker::kRecordBytes;
  header.pid = 7;
  std::memcpy(static_cast<void*>(records.data()), &header, sizeof header);
  records.push_back(record(marker::kBegin, 10, "train"));
  records.push_back(record(marker::kBegin, 20, std::string(24, 'n')));
  records.back().more = 1;
  records.push_back(record(marker::kText, 0, "rest"));
  records.push_back(record(marker::kNumber, 0, "loss"));
  records.push_back(record(marker::kString, 0, "note"));
  records.back().more = 1;
  records.push_back(record(marker::kText, 0, "value"));
  records.push_back(Record{});
  records.push_back(record(marker::kEnd, 30, "train"));
  records.push_back(record(marker::kBegin, 40, "step"));
  records.back().value.end_ns = 50;
  const std::string bytes(reinterpret_cast<const char*>(records.data()), records.size() * sizeof(Record));
  return {bytes, bytes + bytes.substr(64), bytes.substr(0, 128)};
}
