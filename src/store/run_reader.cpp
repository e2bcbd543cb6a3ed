#include "store/run_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

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
  // A name with a dot is a part that is about to be claimed.
  std::erase_if(folders, [&](const std::string& name) {
    return name.starts_with('.') || !fs::is_directory(dir_ / "nodes" / name, error);
  });
  auto parts = read_raw_parts(dir_, folders, warnings_);
  if (manifest_.parts || !parts.empty()) {
    parts_ = join_parts(std::move(parts), manifest_, warnings_);
    for (const std::string& name : parts_.left_out) std::erase(folders, name);
  } else {
    const std::set<std::string> known(folders.begin(), folders.end());
    for (const std::string& name : manifest_.nodes)
      if (!known.contains(file_name_of(name)))
        warnings_.push_back({"node-missing", fmt::format("{} has no folder for the node {}", dir_.string(), name),
                             "copy the whole run directory"});
  }
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
  index_.emplace(node.name, nodes_.size());
  nodes_.push_back(std::move(node));
}

const Node* RunReader::find(const std::string& node) const {
  const auto found = index_.find(node);
  return found == index_.end() ? nullptr : &nodes_[found->second];
}

const RunPart* RunReader::find_part(const std::string& node) const {
  const auto found = parts_.by_node.find(file_name_of(node));
  return found == parts_.by_node.end() ? nullptr : &found->second;
}

const Manifest& RunReader::part(const std::string& node) const {
  const RunPart* part = find_part(node);
  return part ? part->manifest : manifest_;
}

ClockMap RunReader::clock(const std::string& node) const {
  const RunPart* part = find_part(node);
  return part ? part->clock : ClockMap();
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
  auto trace =
      parse_samples(*content, file->compressed, sensor, info, file->path.string(), damage ? *damage : warnings_);
  if (const RunPart* moved = find_part(node); trace && moved) moved->clock.move(trace->t_ns);
  return trace;
}

// The latest time that anything of the node bears, in its own clock.
MonoTime RunReader::last_moment(const std::string& node) {
  const RunPart* moved = find_part(node);
  // What is in the reference's time already is left to the samples: they go on as long as the node lives.
  std::int64_t last = 0;
  if (!moved || moved->clock.same()) {
    const Manifest& manifest = part(node);
    if (manifest.begin) last = to_ns(*manifest.begin);
    for (const ClockPair& pair : manifest.clocks) last = std::max(last, to_ns(pair.mono));
    if (manifest.end) last = std::max(last, to_ns(*manifest.end));
  }
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
  } else if (part(node).state != "complete") {
    const fs::path markers = (find_part(node) ? folder(node) : dir_) / "markers";
    MarkerLog log(markers);
    log.poll();
    regions = log.regions(last_moment(node));
    if (log.damaged() > 0)
      warnings_.push_back(
          {"markers-damaged", fmt::format("{}: {} records left out", markers.string(), log.damaged()), ""});
  }
  if (const RunPart* moved = find_part(node); moved && !moved->clock.same())
    for (Region& region : regions) {
      region.begin = moved->clock.to_reference(region.begin);
      region.end = moved->clock.to_reference(region.end);
    }
  sort_by_begin(regions);
  return regions;
}

Result<std::vector<Event>> RunReader::events(const std::string& node) {
  const fs::path file = folder(node) / "events.csv";
  const auto text = read_or_empty(file, kMaxTable);
  if (!text) return tl::unexpected(text.error());
  auto events = parse_events(*text, file.string(), warnings_);
  if (const RunPart* moved = find_part(node); moved && !moved->clock.same())
    for (Event& event : events) event.t = moved->clock.to_reference(event.t);
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.t < b.t; });
  return events;
}

}  // namespace ergometer
