#include "store/run_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/file.hpp"
#include "base/text.hpp"
#include "store/run_json.hpp"

namespace ergometer {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMaxPart = 64 << 20;
constexpr std::size_t kMostNames = 8;  // in a message
// Where nothing tells how clocks lie, the commands are taken to have begun together: launchers start ranks within that.
constexpr Nanos kLaunchSpread = std::chrono::seconds(10);

std::string names_text(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostNames);
  std::string out =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) out += fmt::format(" and {} more", names.size() - shown);
  return out;
}

template <class Time>
void move_time(std::optional<Time>& t, const ClockMap& clock) {
  if (t) *t = clock.to_reference(*t);
}

void move_interval(std::optional<Interval>& interval, const ClockMap& clock) {
  if (interval) *interval = {clock.to_reference(interval->begin), clock.to_reference(interval->end)};
}

void move_manifest(Manifest& m, const ClockMap& clock) {
  if (clock.same()) return;
  move_time(m.begin, clock);
  move_time(m.end, clock);
  move_interval(m.idle_before, clock);
  move_interval(m.idle_after, clock);
  for (auto& pair : m.clocks) pair.mono = clock.to_reference(pair.mono);
  for (auto& rank : m.ranks) {
    move_time(rank.begin, clock);
    move_time(rank.end, clock);
  }
}

// First and last moment that a part knows of, in its own time.
std::optional<Interval> extent(const Manifest& m) {
  std::optional<Interval> out;
  const auto widen = [&out](MonoTime t) {
    if (!out) out = Interval{t, t};
    out->begin = std::min(out->begin, t);
    out->end = std::max(out->end, t);
  };
  for (const auto& pair : m.clocks) widen(pair.mono);
  if (m.begin) widen(*m.begin);
  if (m.end) widen(*m.end);
  return out;
}

// Parts that by their wall clocks ran at another time than all others: one of the clocks is wrong, or they are of
// different runs.
void find_strangers(const RunParts& parts, std::vector<Warning>& warnings) {
  struct Span {
    MonoTime begin, end;
    const std::string* node;
  };
  // What was measured, or is one clock, is right.
  if (std::none_of(parts.by_node.begin(), parts.by_node.end(), [](const auto& part) { return part.second.by_wall; }))
    return;
  std::vector<Span> spans;
  for (const auto& [folder, part] : parts.by_node)
    if (part.manifest.begin && part.manifest.end) spans.push_back({*part.manifest.begin, *part.manifest.end, &folder});
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<std::vector<std::string>> groups;
  MonoTime end = MonoTime::min();
  for (const Span& span : spans) {
    if (groups.empty() || span.begin > end) groups.emplace_back();
    groups.back().push_back(*span.node);
    end = std::max(end, span.end);
  }
  if (groups.size() < 2) return;
  const auto largest =
      std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<std::string> apart;
  for (auto group = groups.begin(); group != groups.end(); ++group)
    if (group != largest) apart.insert(apart.end(), group->begin(), group->end());
  warnings.push_back(
      {"clocks-apart",
       fmt::format("by their clocks {} did not run at the same time as {}", names_text(apart), names_text(*largest)),
       "if they did, a wall clock is wrong: each node's energy holds, lines over all nodes do not"});
}

// A part may call its reference by another name of that machine; here by its folder.
void resolve_references(std::vector<RawPart>& parts) {
  std::map<std::string, std::string> folders;  // by any of a machine's names
  for (const RawPart& part : parts)
    if (part.manifest.place)
      for (const std::string& alias : part.manifest.place->aliases) folders.emplace(alias, part.folder);
  for (const RawPart& part : parts) folders[part.folder] = part.folder;
  for (RawPart& part : parts) {
    if (!part.manifest.clock) continue;
    const auto known = folders.find(part.manifest.clock->reference);
    if (known != folders.end()) part.manifest.clock->reference = known->second;
  }
}

ClockMap map_of(const RawPart& part, const std::string& reference, const RawPart* there,
                std::vector<Warning>& warnings) {
  const auto link = link_of(part, reference, there);
  if (link) {
    ClockMap map(link->offsets);
    if (map.rejected() > 0)
      warnings.push_back({"clock-damaged",
                          fmt::format("{} of {} clock offsets of node {} make no sense and are left out",
                                      map.rejected(), link->offsets.size(), part.folder),
                          ""});
    return map;
  }
  const auto begin = part.manifest.begin;
  const bool aligned = begin && there && there->manifest.begin;
  warnings.push_back({"clock-unknown",
                      fmt::format("nothing tells how the clock of node {} lies against that of {}{}", part.folder,
                                  reference, aligned ? ": their commands are taken to have begun together" : ""),
                      "its own energies hold; what is added up over nodes by time may be of different moments"});
  if (!aligned) return {};
  return ClockMap({{*begin, *there->manifest.begin - *begin, kLaunchSpread}});
}

bool is_named(const Manifest& part, const std::string& folder, const std::string& name) {
  if (folder == file_name_of(name)) return true;
  if (part.place && (part.place->hostname == name || std::find(part.place->aliases.begin(), part.place->aliases.end(),
                                                               name) != part.place->aliases.end()))
    return true;
  return std::any_of(part.ranks.begin(), part.ranks.end(), [&](const RankEnd& r) { return r.node == name; });
}

// Names that the launcher gave and no part answers to, or how many are missing where it gave a number only.
std::vector<std::string> missing_nodes(const Manifest& run, const RunParts& parts) {
  std::set<std::string> present;
  std::size_t answered = 0;
  for (const auto& [folder, part] : parts.by_node) {
    present.insert(folder);
    ++answered;
    if (!part.manifest.place) continue;
    present.insert(part.manifest.place->hostname);
    present.insert(part.manifest.place->aliases.begin(), part.manifest.place->aliases.end());
    answered += part.manifest.place->aliases.size();
    for (const auto& rank : part.manifest.ranks) present.insert(rank.node);
  }
  std::vector<std::string> missing;
  for (const std::string& name : run.nodes)
    if (!present.contains(name) && !present.contains(file_name_of(name))) missing.push_back(name);
  const auto expected = static_cast<std::size_t>(std::max(0, run.parts->nodes.value_or(0)));
  if (run.nodes.empty() && expected > answered)
    missing.push_back(fmt::format("{} of {} nodes", expected - answered, expected));
  return missing;
}

void find_missing_ranks(const Manifest& run, std::vector<Warning>& warnings) {
  const int expected = run.parts->ranks.value_or(0);
  std::set<int> known;
  for (const auto& rank : run.ranks) known.insert(rank.rank);
  std::vector<std::string> missing;
  for (int rank = 0; rank < expected; ++rank)
    if (!known.contains(rank)) missing.push_back(fmt::to_string(rank));
  if (missing.empty() || known.empty()) return;
  warnings.push_back({"ranks-missing", fmt::format("nothing is known of the ranks {}", names_text(missing)),
                      "they ran on nodes that are missing, or ended before they could say so"});
}

// The exit code of the first rank that failed, else 0 if every one is known to have ended well.
void settle_end(Manifest& run, const RunParts& parts) {
  run.exit_code.reset();
  run.signal.reset();
  bool all_known = true, any = false;
  const auto take = [&](const std::optional<int>& code, const std::optional<int>& signal) {
    any = true;
    all_known &= code.has_value();
    if (!code || *code == 0 || run.exit_code) return;
    run.exit_code = code;
    run.signal = signal;
  };
  for (const auto& rank : run.ranks) take(rank.exit_code, rank.signal);
  for (const auto& [folder, part] : parts.by_node)
    if (part.manifest.ranks.empty()) take(part.manifest.exit_code, part.manifest.signal);
  if (!run.exit_code && any && all_known) run.exit_code = 0;
}

void settle_overhead(Manifest& run, const RunParts& parts) {
  Overhead sum;
  for (const auto& [folder, part] : parts.by_node) {
    const auto& one = part.manifest.overhead;
    if (!one) return;  // the sum would be too small
    sum.cpu_s += one->cpu_s;
    if (one->max_rss_bytes) sum.max_rss_bytes = std::max(sum.max_rss_bytes.value_or(0), *one->max_rss_bytes);
  }
  if (!parts.by_node.empty()) run.overhead = sum;
}

// The same warning of many nodes is said once, with their names.
void gather_warnings(Manifest& run, const RunParts& parts) {
  std::vector<Warning> order;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> nodes;
  for (const auto& [folder, part] : parts.by_node)
    for (const Warning& w : part.manifest.warnings) {
      auto& names = nodes[{w.code, w.message}];
      if (names.empty()) order.push_back(w);
      if (names.empty() || names.back() != folder) names.push_back(folder);
    }
  for (Warning& w : order) {
    w.message = fmt::format("{} (node {})", w.message, names_text(nodes[{w.code, w.message}]));
    run.warnings.push_back(std::move(w));
  }
}

void settle_state(Manifest& run, const RunParts& parts, std::vector<Warning>& warnings) {
  std::vector<std::string> cut;
  for (const auto& [folder, part] : parts.by_node)
    if (part.manifest.state != "complete") cut.push_back(folder);
  run.state = "complete";
  if (!cut.empty()) {
    run.state = "running";
    warnings.push_back({"part-not-complete",
                        fmt::format("the measurement of node {} has not ended, or was cut", names_text(cut)),
                        "what was recorded up to then is shown"});
  }
  run.parts->missing = missing_nodes(run, parts);
  if (run.parts->missing.empty()) return;
  if (run.state == "complete") run.state = "incomplete";
  warnings.push_back({"node-missing",
                      fmt::format("nothing was recorded on {}: the total lacks it", names_text(run.parts->missing)),
                      "if its folder lies elsewhere, join both with ergometer merge"});
}

}  // namespace

std::vector<RawPart> read_raw_parts(const fs::path& dir, const std::vector<std::string>& nodes,
                                    std::vector<Warning>& warnings) {
  std::vector<RawPart> out;
  for (const std::string& node : nodes) {
    const fs::path file = dir / "nodes" / node / "part.json";
    const auto text = read_file(file, kMaxPart);
    if (!text && text.error().code == ErrorCode::not_found) continue;
    auto part = text ? part_from_json(*text, file.string()) : tl::unexpected(text.error());
    if (part) {
      out.push_back({node, std::move(*part)});
      continue;
    }
    warnings.push_back({"part-damaged", part.error().message,
                        "its readings are used; how its command ended and how its clock lies are not known"});
    RawPart damaged{node, {}};
    out.push_back(std::move(damaged));
  }
  return out;
}

std::vector<std::size_t> find_twins(std::vector<RawPart>& parts, std::vector<Warning>& warnings) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::size_t>> machines;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (const auto& place = parts[i].manifest.place; place && !place->boot_id.empty())
      machines[{place->boot_id, place->time_namespace, place->host_root}].push_back(i);
  std::vector<bool> gone(parts.size());
  for (const auto& [machine, members] : machines) {
    for (std::size_t a = 0; a < members.size(); ++a) {
      for (std::size_t b = a + 1; b < members.size(); ++b) {
        if (gone[members[a]] || gone[members[b]]) continue;
        const auto x = extent(parts[members[a]].manifest), y = extent(parts[members[b]].manifest);
        if (!x || !y || x->end <= y->begin || y->end <= x->begin) continue;
        const bool first = x->duration() >= y->duration();
        const std::size_t kept = members[first ? a : b], left = members[first ? b : a];
        gone[left] = true;
        auto& aliases = parts[kept].manifest.place->aliases;
        aliases.push_back(parts[left].folder);
        const auto& more = parts[left].manifest.place->aliases;
        aliases.insert(aliases.end(), more.begin(), more.end());
        warnings.push_back({"machine-twice",
                            fmt::format("{} and {} are one machine, measured at the same time: {} is left out",
                                        parts[kept].folder, parts[left].folder, parts[left].folder),
                            "its energy is in the total once; the regions of the part left out are not shown"});
      }
    }
  }
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < gone.size(); ++i)
    if (gone[i]) out.push_back(i);
  return out;
}

std::string choose_reference(const Manifest& run, const std::vector<RawPart>& parts) {
  if (run.parts && !run.parts->clock_reference.empty()) {
    for (const RawPart& part : parts)
      if (is_named(part.manifest, part.folder, run.parts->clock_reference)) return part.folder;
    return run.parts->clock_reference;
  }
  std::map<std::string, std::size_t> votes;
  for (const RawPart& part : parts)
    if (part.manifest.clock && !part.manifest.clock->reference.empty()) ++votes[part.manifest.clock->reference];
  const auto most =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != votes.end()) return most->first;
  for (const RawPart& part : parts)
    if (!part.manifest.clocks.empty()) return part.folder;
  return parts.empty() ? std::string() : parts.front().folder;
}

std::optional<ClockLink> link_of(const RawPart& part, const std::string& reference, const RawPart* there) {
  ClockLink link;
  link.reference = reference;
  if (part.folder == reference) return link;
  if (const auto& own = part.manifest.clock; own && file_name_of(own->reference) == file_name_of(reference)) {
    if (own->method == ClockLink::Method::same || !own->offsets.empty()) return own;
  }
  if (!there) return std::nullopt;
  const auto &here = part.manifest.place, &other = there->manifest.place;
  if (here && other && !here->boot_id.empty() && here->boot_id == other->boot_id &&
      here->time_namespace == other->time_namespace)
    return link;
  link.method = ClockLink::Method::wall;
  link.offsets = offsets_by_wall(part.manifest.clocks, there->manifest.clocks);
  if (link.offsets.empty()) return std::nullopt;
  return link;
}

RunParts join_parts(std::vector<RawPart> parts, Manifest& run, std::vector<Warning>& warnings) {
  RunParts out;
  if (!run.parts) run.parts = Parts{};
  const auto twins = find_twins(parts, warnings);
  for (auto twin = twins.rbegin(); twin != twins.rend(); ++twin) {
    const auto at = parts.begin() + static_cast<std::ptrdiff_t>(*twin);
    out.left_out.push_back(at->folder);
    parts.erase(at);
  }
  resolve_references(parts);
  out.reference = choose_reference(run, parts);
  // The parts are moved away one by one; the reference is needed until the last.
  std::optional<RawPart> there;
  for (const RawPart& part : parts)
    if (part.folder == out.reference) there = part;
  for (RawPart& part : parts) {
    const ClockMap clock = map_of(part, out.reference, there ? &*there : nullptr, warnings);
    const auto link = link_of(part, out.reference, there ? &*there : nullptr);
    const bool by_wall = link && link->method == ClockLink::Method::wall;
    RunPart moved{std::move(part.manifest), clock, by_wall};
    move_manifest(moved.manifest, moved.clock);
    // Only the run's own pairs are told on: those of the reference, or of the first where it is missing.
    if (part.folder != out.reference && (there || !out.by_node.empty())) moved.manifest.clocks = {};
    out.by_node.emplace(part.folder, std::move(moved));
  }
  run.begin.reset();
  run.end.reset();
  run.clocks.clear();
  for (const auto& [folder, part] : out.by_node) {
    const Manifest& m = part.manifest;
    if (m.begin) run.begin = std::min(run.begin.value_or(*m.begin), *m.begin);
    if (m.end) run.end = std::max(run.end.value_or(*m.end), *m.end);
    if (!m.clocks.empty()) run.clocks = m.clocks;
    run.ranks.insert(run.ranks.end(), m.ranks.begin(), m.ranks.end());
    if (run.command.empty()) run.command = m.command;
    if (run.directory.empty()) run.directory = m.directory;
    if (run.tool_version.empty()) run.tool_version = m.tool_version;
  }
  std::stable_sort(run.ranks.begin(), run.ranks.end(),
                   [](const RankEnd& a, const RankEnd& b) { return a.rank < b.rank; });
  // A part that has not ended leaves the run's end open.
  for (const auto& [folder, part] : out.by_node)
    if (!part.manifest.end) run.end.reset();
  find_strangers(out, warnings);
  settle_end(run, out);
  settle_overhead(run, out);
  gather_warnings(run, out);
  settle_state(run, out, warnings);
  find_missing_ranks(run, warnings);
  return out;
}

}  // namespace ergometer
