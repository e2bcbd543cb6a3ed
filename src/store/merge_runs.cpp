#include "store/merge_runs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/file.hpp"
#include "base/text.hpp"
#include "model/clock_map.hpp"
#include "store/run_json.hpp"
#include "store/run_parts.hpp"

namespace ergometer {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLargestJson = 64 << 20;

// A node's folder of one of the runs.
struct Source {
  fs::path run, folder;
  std::string key;       // of its launch, or its run's folder: within it names of nodes mean the same
  bool own_part = true;  // it has a part.json; else it is of a run of one machine
};

struct Gathered {
  std::vector<Source> sources;
  std::vector<RawPart> parts;  // one a source; named by their path until they get their names
  std::vector<std::string> expected;
  Manifest run;  // of the first
  std::set<std::string> keys;
  std::vector<Warning> warnings;
};

Result<Manifest> read_run_json(const fs::path& run) {
  const auto text = read_file(run / "run.json", kLargestJson);
  if (!text && text.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, fmt::format("{} is no run directory: it has no run.json", run.string()),
                "name folders that ergometer run wrote");
  if (!text) return tl::unexpected(text.error());
  return manifest_from_json(*text, (run / "run.json").string());
}

// A run of one machine as a part: its manifest, and what its node.json says of the machine.
RawPart part_of_run(const Manifest& run, const fs::path& folder) {
  RawPart part{folder.string(), run};
  part.manifest.nodes.clear();
  Place place;
  place.node = folder.filename().string();
  const auto text = read_file(folder / "node.json", kLargestJson);
  if (const auto node = text ? node_from_json(*text, folder.string()) : tl::unexpected(text.error())) {
    place.hostname = node->hostname;
    place.boot_id = node->boot_id;
  }
  part.manifest.place = std::move(place);
  return part;
}

Result<void> gather_run(const fs::path& run, Gathered& out) {
  auto manifest = read_run_json(run);
  if (!manifest) return tl::unexpected(manifest.error());
  std::vector<std::string> folders;
  std::error_code error;
  for (std::string& name : list_dir(run / "nodes"))
    if (!name.starts_with('.') && fs::is_directory(run / "nodes" / name, error)) folders.push_back(std::move(name));
  if (folders.empty())
    return fail(ErrorCode::corrupt, fmt::format("{} has no node: its folder nodes is missing or empty", run.string()),
                "copy the whole run directory, or leave it out");
  auto parts = read_raw_parts(run, folders, out.warnings);
  const std::string key = manifest->parts ? manifest->parts->run_key : run.string();
  if (manifest->parts) {
    out.keys.insert(key);
    for (const std::string& node : manifest->nodes)
      if (std::find(out.expected.begin(), out.expected.end(), node) == out.expected.end()) out.expected.push_back(node);
  }
  for (const std::string& name : folders) {
    const fs::path folder = run / "nodes" / name;
    const auto own = std::find_if(parts.begin(), parts.end(), [&](const RawPart& p) { return p.folder == name; });
    out.sources.push_back({run, folder, key, own != parts.end()});
    out.parts.push_back(own != parts.end() ? RawPart{folder.string(), std::move(own->manifest)}
                                           : part_of_run(*manifest, folder));
    if (!out.parts.back().manifest.place) out.parts.back().manifest.place = Place{};
    if (out.parts.back().manifest.place->node.empty()) out.parts.back().manifest.place->node = name;
  }
  if (out.run.command.empty() && out.run.name.empty()) out.run = *manifest;
  if (manifest->parts) {
    if (!out.run.parts) out.run.parts = manifest->parts;
    const auto larger = [](std::optional<int>& a, std::optional<int> b) {
      if (b) a = std::max(a.value_or(0), *b);
    };
    larger(out.run.parts->nodes, manifest->parts->nodes);
    larger(out.run.parts->ranks, manifest->parts->ranks);
  }
  return {};
}

void drop_twins(Gathered& all) {
  const auto twins = find_twins(all.parts, all.warnings);
  for (auto twin = twins.rbegin(); twin != twins.rend(); ++twin) {
    all.parts.erase(all.parts.begin() + static_cast<std::ptrdiff_t>(*twin));
    all.sources.erase(all.sources.begin() + static_cast<std::ptrdiff_t>(*twin));
  }
  // The names of the one left out stay as node names, not as the paths by which it was told.
  for (auto& part : all.parts)
    for (auto& alias : part.manifest.place->aliases) alias = fs::path(alias).filename().string();
}

// Folder names in the new run: the old ones, with digits of the boot id or a number where two machines have the same.
std::vector<std::string> new_names(const Gathered& all) {
  std::vector<std::string> out;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < all.sources.size(); ++i) {
    const std::string plain = all.sources[i].folder.filename().string();
    const std::string boot = file_name_of(all.parts[i].manifest.place->boot_id.substr(0, 8));
    const std::string longer = boot.empty() ? plain : plain + "-" + boot;
    std::string name = taken.contains(plain) ? longer : plain;
    for (int n = 2; taken.contains(name); ++n) name = fmt::format("{}-{}", longer, n);
    taken.insert(name);
    out.push_back(std::move(name));
  }
  return out;
}

// One link after the other: from a's own clock to b's reference, where a's reference is b's own clock.
ClockLink chained(const ClockLink& a, const ClockLink& b) {
  if (a.offsets.empty()) return b;
  if (b.offsets.empty()) return a;
  const ClockMap first(a.offsets), second(b.offsets);
  ClockLink out{b.reference, ClockLink::Method::wall, {}};
  std::vector<std::int64_t> moments;
  for (const auto& o : a.offsets) moments.push_back(to_ns(o.at));
  for (const auto& o : b.offsets) moments.push_back(to_ns(o.at) - a.offsets.front().offset.count());
  std::sort(moments.begin(), moments.end());
  for (const std::int64_t at : moments) {
    const std::int64_t middle = first.to_reference(at), there = second.to_reference(middle);
    out.offsets.push_back({mono_ns(at), Nanos(there - at), Nanos(first.error_ns(middle) + second.error_ns(there))});
  }
  return out;
}

// Gives every part the name of its new folder and a link to the clock of one of them, as far as something tells it.
void settle_clocks(Gathered& all, const std::vector<std::string>& names) {
  std::map<std::string, std::vector<std::size_t>> launches;
  for (std::size_t i = 0; i < all.sources.size(); ++i) launches[all.sources[i].key].push_back(i);
  // Within a launch nodes are called as they were; each refers to one of them.
  struct Launch {
    std::optional<RawPart> reference;
    std::string name;
  };
  std::map<std::string, Launch> references;
  std::vector<std::optional<ClockLink>> links(all.parts.size());
  for (const auto& [key, members] : launches) {
    std::vector<RawPart> parts;
    for (const std::size_t i : members)
      parts.push_back({all.sources[i].folder.filename().string(), all.parts[i].manifest});
    Launch launch;
    launch.name = choose_reference(all.run.parts && all.run.parts->run_key == key ? all.run : Manifest{}, parts);
    for (const RawPart& part : parts)
      if (part.folder == launch.name) launch.reference = part;
    for (std::size_t k = 0; k < members.size(); ++k)
      links[members[k]] = link_of(parts[k], launch.name, launch.reference ? &*launch.reference : nullptr);
    references[key] = std::move(launch);
  }
  // The launches among each other: by the wall clocks of their references, or by the boot id.
  const Launch& whole = references[all.sources.front().key];
  std::string reference = whole.name;
  for (std::size_t i = 0; i < all.sources.size(); ++i)
    if (all.sources[i].key == all.sources.front().key && all.sources[i].folder.filename() == whole.name)
      reference = names[i];
  const RawPart there{reference, whole.reference ? whole.reference->manifest : Manifest{}};
  for (std::size_t i = 0; i < all.parts.size(); ++i) {
    const std::string& key = all.sources[i].key;
    auto& link = links[i];
    // What only the wall clocks tell is in the parts already: who reads them finds it there.
    if (link && link->method != ClockLink::Method::exchange) link.reset();
    if (link && key != all.sources.front().key) {
      const Launch& launch = references[key];
      RawPart from{".", launch.reference ? launch.reference->manifest : Manifest{}};
      from.manifest.clock.reset();
      const auto across = whole.reference && launch.reference ? link_of(from, reference, &there) : std::nullopt;
      link = across ? std::optional(chained(*link, *across)) : std::nullopt;
    }
    if (link) link->reference = reference;
    all.parts[i].manifest.clock = link;
    all.parts[i].manifest.place->node = names[i];
    all.parts[i].manifest.parts.reset();
  }
  all.run.parts->clock_reference = reference;
}

Result<void> put_file(const fs::path& from, const fs::path& to, bool may_link) {
  if (may_link && ::link(from.c_str(), to.c_str()) == 0) return {};
  std::error_code error;
  fs::copy_file(from, to, error);
  if (error) return tl::unexpected(errno_error("copy " + from.string() + " to", to, error.value()));
  return {};
}

Result<void> put_folder(const fs::path& from, const fs::path& to, bool may_link) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return tl::unexpected(errno_error("create", to, error.value()));
  for (const std::string& name : list_dir(from)) {
    const fs::path file = from / name;
    if (name == "part.json") continue;
    if (fs::is_directory(file, error)) {
      if (auto put = put_folder(file, to / name, may_link); !put) return put;
    } else if (fs::is_regular_file(file, error)) {
      if (auto put = put_file(file, to / name, may_link); !put) return put;
    }
  }
  return {};
}

Result<void> put_part(const Source& source, const RawPart& part, const fs::path& to) {
  const bool ended = part.manifest.state == "complete";
  if (auto put = put_folder(source.folder, to, ended); !put) return put;
  // Marks of a run of one machine that has not ended are beside its nodes.
  std::error_code error;
  if (!source.own_part && !ended && fs::is_directory(source.run / "markers", error))
    if (auto put = put_folder(source.run / "markers", to / "markers", false); !put) return put;
  return write_file_atomically(to / "part.json", part_to_json(part.manifest));
}

Result<void> write_merged(const Gathered& all, const std::vector<std::string>& names, const fs::path& out) {
  for (std::size_t i = 0; i < all.sources.size(); ++i)
    if (auto put = put_part(all.sources[i], all.parts[i], out / "nodes" / names[i]); !put) return put;
  // Last: before, it is no run.
  return write_file_atomically(out / "run.json", manifest_to_json(all.run));
}

}  // namespace

Result<MergedRun> merge_runs(const std::vector<fs::path>& runs, const fs::path& out, const std::string& name) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(fs::absolute(out), error);
  Gathered all;
  std::set<fs::path> given;
  for (const fs::path& run : runs) {
    const fs::path place = fs::weakly_canonical(fs::absolute(run), error);
    if (place == target)
      return fail(ErrorCode::invalid_argument, fmt::format("{} is both merged and to be made", run.string()),
                  "choose another name with -o");
    if (!given.insert(place).second) continue;  // a run given twice is one run
    if (auto gathered = gather_run(run, all); !gathered) return tl::unexpected(gathered.error());
  }
  if (fs::exists(target, error) && (!fs::is_directory(target, error) || !list_dir(target).empty()))
    return fail(ErrorCode::exists, fmt::format("{} exists and is not empty", out.string()),
                "choose another name with -o");
  drop_twins(all);
  const auto names = new_names(all);
  if (!all.run.parts) all.run.parts = Parts{};
  if (all.keys.size() != 1) all.run.parts->run_key = "merged";
  settle_clocks(all, names);
  // What is of one machine stands in its part.
  Manifest run;
  run.name = name.empty() ? all.run.name : name;
  run.command = all.run.command;
  run.directory = all.run.directory;
  run.environment = all.run.environment;
  run.tool_version = all.run.tool_version;
  run.parts = all.run.parts;
  run.nodes = all.expected;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!all.sources[i].own_part) run.nodes.push_back(names[i]);
  all.run = std::move(run);
  const bool there = fs::exists(target, error);
  if (auto written = write_merged(all, names, target); !written) {
    fs::remove_all(target / "nodes", error);
    if (!there) fs::remove_all(target, error);
    return tl::unexpected(written.error());
  }
  return MergedRun{names.size(), std::move(all.warnings)};
}

}  // namespace ergometer
