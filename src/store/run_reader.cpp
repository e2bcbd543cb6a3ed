#include "store/run_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/file.hpp"
#include "base/text.hpp"
#include "store/marker_log.hpp"
#include "store/run_json.hpp"
#include "store/run_tables.hpp"
#include "store/sample_file.hpp"

namespace ergometer {
namespace fs = std::filesystem;
namespace {

// Larger files are refused rather than read into memory.
constexpr std::size_t kMaxJson = 64 << 20;
constexpr std::size_t kMaxTable = std::size_t{16} << 30;
constexpr std::string_view kCompressed = ".csv.zst";
constexpr std::string_view kPlain = ".csv";

// The whole file; "" if it is missing, since a zero-byte file counts as absent.
Result<std::string> read_or_empty(const fs::path& path, std::size_t max_bytes) {
  auto text = read_file(path, max_bytes);
  if (!text && text.error().code == ErrorCode::not_found) return std::string();
  return text;
}

bool has_content(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return !error && size > 0;
}

struct SampleFile {
  fs::path path;
  bool compressed;
};

std::optional<SampleFile> sample_file(const fs::path& folder, const std::string& sensor) {
  const std::string stem = (folder / "samples" / file_name_of(sensor)).string();
  for (const bool compressed : {true, false}) {
    const fs::path path = stem + std::string(compressed ? kCompressed : kPlain);
    if (has_content(path)) return SampleFile{path, compressed};
  }
  return std::nullopt;
}

void sort_by_begin(std::vector<Region>& regions) {
  const auto earlier = [](const Region& a, const Region& b) { return a.begin < b.begin; };
  if (!std::is_sorted(regions.begin(), regions.end(), earlier))
    std::stable_sort(regions.begin(), regions.end(), earlier);
}

}  // namespace

Result<RunReader> RunReader::open(const fs::path& dir) {
  constexpr const char* kHint = "name the folder that ergometer run wrote (it holds run.json)";
  std::error_code error;
  const auto status = fs::status(dir, error);
  if (!fs::exists(status))
    return fail(ErrorCode::not_found, fmt::format("there is no run directory {}", dir.string()), kHint);
  if (!fs::is_directory(status))
    return fail(ErrorCode::invalid_argument, fmt::format("{} is no run directory but a file", dir.string()), kHint);
  const fs::path file = dir / "run.json";
  const auto text = read_or_empty(file, kMaxJson);
  if (!text) return tl::unexpected(text.error());
  if (text->empty())
    return fail(ErrorCode::not_found,
                fmt::format("{} is no run directory: its run.json is {}", dir.string(),
                            fs::exists(file, error) ? "empty" : "missing"),
                kHint);
  auto manifest = manifest_from_json(*text, file.string());
  if (!manifest) return tl::unexpected(manifest.error());
  RunReader reader;
  reader.dir_ = dir;
  reader.manifest_ = std::move(*manifest);
  reader.read_nodes();
  return reader;
}

void RunReader::read_nodes() {
  std::vector<std::string> folders = list_dir(dir_ / "nodes");
  std::error_code error;
  std::erase_if(folders, [&](const std::string& name) { return !fs::is_directory(dir_ / "nodes" / name, error); });
  for (const std::string& name : manifest_.nodes)
    if (std::find(folders.begin(), folders.end(), file_name_of(name)) == folders.end())
      warnings_.push_back({"node-missing", fmt::format("{} has no folder for the node {}", dir_.string(), name),
                           "copy the whole run directory"});
  for (const std::string& folder : folders) read_node(folder);
}

void RunReader::read_node(const std::string& folder) {
  const fs::path file = dir_ / "nodes" / folder / "node.json";
  const auto text = read_or_empty(file, kMaxJson);
  std::string complaint;
  Node node;
  if (!text) {
    complaint = text.error().message;
  } else if (text->empty()) {
    complaint = file.string() + " is missing or empty";
  } else if (auto parsed = node_from_json(*text, file.string())) {
    node = std::move(*parsed);
  } else {
    complaint = parsed.error().message;
  }
  if (!complaint.empty())
    warnings_.push_back({"node-damaged", complaint, "the sensors' channels are inferred from their columns' names"});
  // The folder is what is there; a name that does not lead to it would find no samples.
  if (file_name_of(node.name) != folder) node.name = folder;
  nodes_.push_back(std::move(node));
}

const Node* RunReader::find(const std::string& node) const {
  for (const Node& candidate : nodes_)
    if (candidate.name == node) return &candidate;
  return nullptr;
}

fs::path RunReader::folder(const std::string& node) const { return dir_ / "nodes" / file_name_of(node); }

std::vector<std::string> RunReader::sensors(const std::string& node) const {
  std::vector<std::string> names;
  const fs::path samples = folder(node) / "samples";
  const Node* known = find(node);
  for (const std::string& file : list_dir(samples)) {
    const auto suffix = file.ends_with(kCompressed) ? kCompressed : kPlain;
    if (!file.ends_with(suffix) || file.size() == suffix.size() || !has_content(samples / file)) continue;
    std::string name = file.substr(0, file.size() - suffix.size());
    if (known)
      for (const SensorInfo& sensor : known->sensors)
        if (file_name_of(sensor.name) == name) name = sensor.name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

Result<Trace> RunReader::samples(const std::string& node, const std::string& sensor,
                                 std::vector<Warning>* damage) const {
  const auto file = sample_file(folder(node), sensor);
  if (!file)
    return fail(ErrorCode::not_found, fmt::format("{} has no samples of {} on {}", dir_.string(), sensor, node));
  const SensorInfo* info = nullptr;
  if (const Node* known = find(node))
    for (const SensorInfo& candidate : known->sensors)
      if (candidate.name == sensor) info = &candidate;
  const auto content = read_file(file->path, kMaxTable);
  if (!content) return tl::unexpected(content.error());
  return parse_samples(*content, file->compressed, sensor, info, file->path.string(), damage ? *damage : warnings_);
}

// The latest time that anything of the run bears.
MonoTime RunReader::last_moment(const std::string& node) {
  std::int64_t last = manifest_.begin ? to_ns(*manifest_.begin) : 0;
  for (const ClockPair& pair : manifest_.clocks) last = std::max(last, to_ns(pair.mono));
  if (manifest_.end) last = std::max(last, to_ns(*manifest_.end));
  for (const std::string& sensor : sensors(node)) {
    const auto file = sample_file(folder(node), sensor);
    const auto content = file ? read_file(file->path, kMaxTable) : std::string();
    if (!content) continue;
    if (const auto t = last_sample_ns(*content, file && file->compressed)) last = std::max(last, *t);
  }
  return mono_ns(last);
}

Result<std::vector<Region>> RunReader::regions(const std::string& node) {
  const fs::path file = folder(node) / "regions.csv";
  const auto text = read_or_empty(file, kMaxTable);
  if (!text) return tl::unexpected(text.error());
  std::vector<Region> regions;
  if (!text->empty()) {
    regions = parse_regions(*text, file.string(), warnings_);
  } else if (manifest_.state != "complete") {
    MarkerLog log(dir_ / "markers");
    log.poll();
    regions = log.regions(last_moment(node));
    if (log.damaged() > 0)
      warnings_.push_back(
          {"markers-damaged", fmt::format("{}: {} records left out", (dir_ / "markers").string(), log.damaged()), ""});
  }
  sort_by_begin(regions);
  return regions;
}

Result<std::vector<Event>> RunReader::events(const std::string& node) {
  const fs::path file = folder(node) / "events.csv";
  const auto text = read_or_empty(file, kMaxTable);
  if (!text) return tl::unexpected(text.error());
  auto events = parse_events(*text, file.string(), warnings_);
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.t < b.t; });
  return events;
}

}  // namespace ergometer
