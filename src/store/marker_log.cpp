#include "store/marker_log.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/file.hpp"
#include "base/number.hpp"
#include "store/marker_file.hpp"

namespace ergometer {
namespace fs = std::filesystem;
namespace {

using marker::Record;

constexpr std::uint32_t kNone = 0xFFFFFFFF;
// A program that forgets to end its regions nests them ever deeper; from here on they stand side by side.
constexpr std::uint32_t kMaxDepth = 64;
constexpr std::size_t kRefreshed = 256;  // open regions looked at between blocks of records

// A name as a path component.
std::string region_name(std::string_view text) {
  std::string name = valid_utf8(text);
  for (char& c : name)
    if (c == '/' || c == '[' || c == ']' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '_';
  return name.empty() ? "_" : name;
}

class Names {
 public:
  std::uint32_t id(std::string name) {
    const auto [it, added] = ids_.try_emplace(std::move(name), static_cast<std::uint32_t>(list_.size()));
    if (added) list_.push_back(&it->first);
    return it->second;
  }
  const std::string& operator[](std::uint32_t id) const { return *list_[id]; }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<const std::string*> list_;
};

struct Interval64 {
  std::int64_t begin_ns = 0, end_ns = 0;  // end 0: open
  std::int64_t index = marker::kNoIndex;  // explicit, or the number among the siblings
  std::uint32_t parent = kNone;
  std::uint32_t name = 0;
  std::int32_t tid = 0;
  std::uint16_t depth = 0;
  bool explicit_index = false;
  bool numbered = false;  // has siblings of its name
};

struct Siblings {
  std::uint32_t first = 0;
  std::int64_t count = 0;
};
// Children without an index of their own, by name; kept only while the parent is open.
using Children = std::unordered_map<std::uint32_t, Siblings>;

struct Nested {
  std::uint32_t region;
  Children children;
};

// One marker file, replayed into nested regions.
class Process {
 public:
  explicit Process(fs::path path) : file_(std::move(path)) {}

  void poll() {
    file_.poll([this](std::uint64_t slot, const Record& record, const std::string& rest) { take(slot, record, rest); },
               [this] { refresh(kRefreshed); });
    refresh(open_.size());
  }

  [[nodiscard]] const MarkerFile& file() const { return file_; }
  [[nodiscard]] std::int64_t last_ns() const { return last_ns_; }

  [[nodiscard]] std::string current() const {
    std::uint32_t innermost = kNone;
    for (const std::uint64_t slot : open_) {
      const std::uint32_t i = region_of_slot_[slot];
      if (innermost == kNone || regions_[i].begin_ns >= regions_[innermost].begin_ns) innermost = i;
    }
    std::vector<std::uint32_t> chain;
    for (auto i = innermost; i != kNone; i = regions_[i].parent) chain.push_back(i);
    std::string out;
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) append_component(out, regions_[*it]);
    return out;
  }

  void append_regions(std::vector<Region>& out, MonoTime cut_at) const {
    const std::int64_t cut_ns = std::max(to_ns(cut_at), last_ns_);
    const std::size_t first = out.size();
    for (const Interval64& from : regions_) {
      Region region;
      region.cut = from.end_ns == 0;
      region.begin = mono_ns(from.begin_ns);
      region.end = mono_ns(std::max(from.begin_ns, region.cut ? cut_ns : from.end_ns));
      region.pid = file_.header().pid;
      region.tid = from.tid;
      region.rank = file_.header().rank;
      // A parent stands before its children.
      if (from.parent != kNone) region.path = out[first + from.parent].path;
      append_component(region.path, from);
      out.push_back(std::move(region));
    }
    for (const Attribute& attribute : attributes_) {
      auto& list = out[first + attribute.region].attributes;
      const std::string& key = names_[attribute.key];
      std::erase_if(list, [&](const auto& other) { return other.first == key; });
      list.emplace_back(key, attribute.value);
    }
  }

 private:
  struct Attribute {
    std::uint32_t region, key;
    std::string value;
  };

  void append_component(std::string& out, const Interval64& region) const {
    if (!out.empty()) out += '/';
    out += names_[region.name];
    if (!region.explicit_index && !region.numbered) return;
    out += '[';
    append_int(out, region.index);
    out += ']';
  }

  void take(std::uint64_t slot, const Record& record, const std::string& rest) {
    switch (record.kind) {
      case marker::kBegin:
        return begin(slot, record, rest);
      case marker::kEnd:
        return end(record, rest);
      case marker::kNumber:  // one that is not finite is missing
        if (std::isfinite(record.value.number)) attribute(record, format_double(record.value.number));
        return;
      case marker::kString:
        return attribute(record, valid_utf8(rest));
      default:
        return;
    }
  }

  [[nodiscard]] bool over_at(std::uint32_t region, std::int64_t t_ns) const {
    return regions_[region].end_ns != 0 && regions_[region].end_ns <= t_ns;
  }

  void begin(std::uint64_t slot, const Record& record, const std::string& rest) {
    Interval64 region;
    region.begin_ns = record.t_ns;
    region.end_ns = record.value.end_ns;
    region.name = names_.id(region_name(std::string(record.text, record.length) + rest));
    region.tid = record.tid;
    region.explicit_index = record.index >= 0;
    region.index = record.index;

    // It stands inside the innermost of the thread's regions that had not ended when it began. An entry of the stack is
    // never deeper than its position, which bounds the search.
    auto& stack = stacks_[record.tid];
    while (!stack.empty() && over_at(stack.back().region, record.t_ns)) stack.pop_back();
    std::size_t above = stack.size();
    if (above > 0 && regions_[stack.back().region].depth + 1U >= kMaxDepth) above = kMaxDepth - 1;
    while (above > 0 && over_at(stack[above - 1].region, record.t_ns)) --above;
    if (above > 0) {
      region.parent = stack[above - 1].region;
      region.depth = static_cast<std::uint16_t>(regions_[region.parent].depth + 1);
    }
    const auto i = static_cast<std::uint32_t>(regions_.size());
    regions_.push_back(region);
    if (!region.explicit_index) number(i, above == 0 ? top_ : stack[above - 1].children);
    stack.push_back({i, {}});
    if (region_of_slot_.size() <= slot) region_of_slot_.resize(slot + 1, kNone);
    region_of_slot_[slot] = i;
    about_[record.tid] = i;
    last_ns_ = std::max({last_ns_, region.begin_ns, region.end_ns});
    if (region.end_ns == 0) open_.insert(std::upper_bound(open_.begin(), open_.end(), slot), slot);
  }

  void number(std::uint32_t i, Children& children) {
    auto& siblings = children[regions_[i].name];
    if (siblings.count == 0) siblings.first = i;
    regions_[i].index = siblings.count++;
    if (siblings.count > 1) regions_[i].numbered = regions_[siblings.first].numbered = true;
  }

  // The region that a record with an id, or the text of a `mark end`, means; kNone if there is none.
  [[nodiscard]] std::uint32_t named(const Record& record, const std::string& rest) const {
    if (record.id != 0) return record.id < region_of_slot_.size() ? region_of_slot_[record.id] : kNone;
    const auto stack = stacks_.find(record.tid);
    if (stack == stacks_.end()) return kNone;
    const std::string name = region_name(std::string(record.text, record.length) + rest);
    for (auto it = stack->second.rbegin(); it != stack->second.rend(); ++it)
      if (regions_[it->region].end_ns == 0 && names_[regions_[it->region].name] == name) return it->region;
    return kNone;
  }

  void end(const Record& record, const std::string& rest) {
    const std::uint32_t i = named(record, rest);
    about_[record.tid] = i;
    if (i == kNone || regions_[i].end_ns != 0) return;
    regions_[i].end_ns = std::max(record.t_ns, regions_[i].begin_ns);
    last_ns_ = std::max(last_ns_, record.t_ns);
    std::erase_if(open_, [&](std::uint64_t slot) { return region_of_slot_[slot] == i; });
  }

  void attribute(const Record& record, std::string value) {
    std::uint32_t i = kNone;
    if (record.id == 0) {
      const auto about = about_.find(record.tid);
      if (about != about_.end()) i = about->second;
    } else if (record.id < region_of_slot_.size()) {
      i = region_of_slot_[record.id];
    }
    if (i == kNone) return;
    const auto key = names_.id(valid_utf8(std::string_view(record.text, record.length)));
    attributes_.push_back({i, key, std::move(value)});
  }

  // Looks whether the newest `count` open regions have ended meanwhile.
  void refresh(std::size_t count) {
    count = std::min(count, open_.size());
    const std::size_t from = open_.size() - count;
    const auto ends = file_.ends(std::span(open_).subspan(from));
    for (std::size_t k = 0; k < count; ++k) {
      regions_[region_of_slot_[open_[from + k]]].end_ns = ends[k];
      last_ns_ = std::max(last_ns_, ends[k]);
    }
    std::erase_if(open_, [this](std::uint64_t slot) { return regions_[region_of_slot_[slot]].end_ns != 0; });
  }

  MarkerFile file_;
  Names names_;
  std::vector<Interval64> regions_;
  std::vector<std::uint32_t> region_of_slot_;
  std::vector<std::uint64_t> open_;  // slots of the open regions, ascending
  std::map<std::int32_t, std::vector<Nested>> stacks_;
  Children top_;
  std::map<std::int32_t, std::uint32_t> about_;  // region of a thread's last begin or end
  std::vector<Attribute> attributes_;
  std::int64_t last_ns_ = 0;
};

}  // namespace

struct MarkerLog::State {
  fs::path folder;
  std::map<std::string, std::unique_ptr<Process>> processes;  // by file name
};

MarkerLog::MarkerLog(fs::path folder) : state_(std::make_unique<State>()) { state_->folder = std::move(folder); }
MarkerLog::MarkerLog(MarkerLog&&) noexcept = default;
MarkerLog& MarkerLog::operator=(MarkerLog&&) noexcept = default;
MarkerLog::~MarkerLog() = default;

void MarkerLog::poll() {
  for (const std::string& name : list_dir(state_->folder)) {
    if (!name.ends_with(".erg")) continue;
    auto& process = state_->processes[name];
    if (!process) process = std::make_unique<Process>(state_->folder / name);
    process->poll();
  }
}

std::string MarkerLog::current() const {
  const Process* last = nullptr;
  for (const auto& [name, process] : state_->processes)
    if (!last || process->last_ns() > last->last_ns()) last = process.get();
  return last ? last->current() : std::string();
}

std::vector<Region> MarkerLog::regions(MonoTime cut_at) const {
  std::vector<Region> out;
  for (const auto& [name, process] : state_->processes) process->append_regions(out, cut_at);
  const auto earlier = [](const Region& a, const Region& b) { return a.begin < b.begin; };
  if (!std::is_sorted(out.begin(), out.end(), earlier)) std::stable_sort(out.begin(), out.end(), earlier);
  return out;
}

std::size_t MarkerLog::damaged() const {
  std::size_t sum = 0;
  for (const auto& [name, process] : state_->processes) sum += process->file().damaged();
  return sum;
}

std::vector<fs::path> MarkerLog::ended() const {
  std::vector<fs::path> out;
  for (const auto& [name, process] : state_->processes)
    if (process->file().ended()) out.push_back(process->file().path());
  return out;
}

}  // namespace ergometer
