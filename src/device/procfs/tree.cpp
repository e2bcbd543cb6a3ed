#include "device/procfs/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/procfs/process.hpp"
#include "device/procfs/resource.hpp"

namespace ergometer::procfs {
namespace {

constexpr Nanos kPssInterval = std::chrono::seconds(5);
constexpr int kPssShare = 1000;  // of the time at most one part in so many goes into reading PSS

struct Member {
  ProcessStat stat;
  std::optional<ProcessIo> io;  // newest known
  bool io_unknown = false;      // could not be read this time although the process lives
};
using Members = std::map<int, Member>;

// Who belongs to the tree. Looks at processes that are new only: the kernel tells the last pid it gave away, and while
// that stays the same there are none.
class Membership {
 public:
  Membership(const HostRoot& root, int root_pid) : root_(root), roots_{root_pid} {}

  // What is below `pid` joins at the next look.
  void add_root(int pid) {
    roots_.insert(pid);
    strangers_.clear();
    last_pid_.reset();
  }

  // Adds the pids of new members to `members`.
  void find_new(Members& members) {
    const auto last_pid = newest_pid();
    if (last_pid && last_pid == last_pid_) return;
    last_pid_ = last_pid;
    std::map<int, ProcessStat> fresh;
    std::vector<int> strangers;
    for (const int pid : process_ids(root_)) {
      if (roots_.contains(pid) || members.contains(pid)) continue;
      if (std::binary_search(strangers_.begin(), strangers_.end(), pid))
        strangers.push_back(pid);
      else if (const auto stat = read_process_stat(root_, pid))
        fresh.emplace(pid, *stat);
    }
    // A child may come before its parent: go on until nothing is added.
    for (bool added = true; added;) {
      added = false;
      for (auto it = fresh.begin(); it != fresh.end();) {
        const bool member = roots_.contains(it->second.ppid) || members.contains(it->second.ppid);
        if (member) members[it->first].stat = it->second;
        added = added || member;
        it = member ? fresh.erase(it) : std::next(it);
      }
    }
    for (const auto& [pid, stat] : fresh) strangers.push_back(pid);
    std::sort(strangers.begin(), strangers.end());
    strangers_ = std::move(strangers);
  }

 private:
  // Last field of /proc/loadavg.
  std::optional<std::uint64_t> newest_pid() const {
    const auto text = read_file(root_.path("/proc/loadavg"), 4096);
    return text ? parse_uint(split(trim(*text), ' ').back()) : std::nullopt;
  }

  HostRoot root_;
  std::set<int> roots_;
  std::optional<std::uint64_t> last_pid_;
  std::vector<int> strangers_;  // ascending
};

// CPU seconds that never fall. When a process ends, its time moves to its parent's sum of children, if that waits for
// it, perhaps a moment later; what has not arrived there after one more reading is kept here.
class CpuSum {
 public:
  // `waited_s`: of everything that the roots have waited for.
  double update(const Members& before, const Members& now, double waited_s) {
    double sum = waited_s, folded = 0, ended = 0;
    if (waited_s_) folded += waited_s - *waited_s_;
    for (const auto& [pid, member] : now) {
      sum += member.stat.own_s + member.stat.children_s;
      if (const auto old = before.find(pid); old != before.end())
        folded += member.stat.children_s - old->second.stat.children_s;
    }
    for (const auto& [pid, member] : before)
      if (!now.contains(pid)) ended += member.stat.own_s + member.stat.children_s;
    const double late = std::min(open_, std::max(folded, 0.0));
    kept_ += open_ - late;
    open_ = std::max(ended - std::max(folded - late, 0.0), 0.0);
    waited_s_ = waited_s;
    total_ = std::max(total_, sum + kept_);
    return total_;
  }

 private:
  std::optional<double> waited_s_;
  double open_ = 0;  // ended since the last reading, not yet seen at a parent
  double kept_ = 0;
  double total_ = 0;
};

// Disk bytes that never fall. A process includes the children it waited for, so one that ended counts on here only if
// no living process above it took it over.
class IoSum {
 public:
  // `taken_over` is what `heirs`, the roots alive, and roots before them took over from their children; unset if that
  // cannot be read.
  void update(const Members& before, const Members& now, const std::set<int>& heirs,
              std::optional<ProcessIo> taken_over) {
    ProcessIo sum = taken_over.value_or(ProcessIo{});
    complete_ = true;
    for (const auto& [pid, member] : now) {
      if (member.io) add(sum, *member.io);
      complete_ = complete_ && !member.io_unknown;
    }
    for (const auto& [pid, member] : before)
      if (!now.contains(pid) && member.io &&
          !has_heir(member.stat.ppid, before, now, taken_over ? heirs : std::set<int>{}))
        add(kept_, *member.io);
    total_.read_bytes = std::max(total_.read_bytes, sum.read_bytes + kept_.read_bytes);
    total_.written_bytes = std::max(total_.written_bytes, sum.written_bytes + kept_.written_bytes);
  }
  std::optional<double> read() const { return complete_ ? std::optional(total_.read_bytes) : std::nullopt; }
  std::optional<double> written() const { return complete_ ? std::optional(total_.written_bytes) : std::nullopt; }

 private:
  static void add(ProcessIo& sum, const ProcessIo& part) {
    sum.read_bytes += part.read_bytes;
    sum.written_bytes += part.written_bytes;
  }
  static bool has_heir(int parent, const Members& before, const Members& now, const std::set<int>& heirs) {
    for (std::size_t steps = 0; steps <= before.size(); ++steps) {
      if (now.contains(parent) || heirs.contains(parent)) return true;
      const auto ended = before.find(parent);
      if (ended == before.end()) return false;
      parent = ended->second.stat.ppid;
    }
    return false;
  }

  ProcessIo kept_, total_;
  bool complete_ = true;
};

// The processes above the tree. The first is our own caller's choice and must be there; the others may end at any time.
class Roots {
 public:
  Roots(const HostRoot& root, int first, std::shared_ptr<const ProcessRoots> more)
      : root_(root), first_(first), more_(std::move(more)) {}

  // Takes up roots that are new and no members.
  void find_new(const Members& members, Membership& membership) {
    if (!more_) return;
    for (const auto& [pid, told] : more_->all()) {
      if (pid == first_ || members.contains(pid) || others_.contains(pid)) continue;
      others_[pid];
      membership.add_root(pid);
    }
  }

  // CPU seconds of everything that the roots waited for. An Error if the first cannot be read.
  Result<double> waited_s() {
    const auto first = read_process_stat(root_, first_);
    if (!first) return tl::unexpected(first.error());
    double sum = first->children_s;
    if (others_.empty()) return sum;
    const auto told = more_->all();
    for (auto& [pid, other] : others_) {
      const auto stat = other.ended ? Result<ProcessStat>() : read_process_stat(root_, pid);
      const auto as_told = told.find(pid);
      // Its number may be another process's by now.
      other.ended = other.ended || !stat || (other.start_ticks && *other.start_ticks != stat->start_ticks);
      if (!other.ended) {
        other.start_ticks = stat->start_ticks;
        other.children_s = std::max(other.children_s, stat->children_s);
      } else if (as_told != told.end() && as_told->second.cpu_s) {
        other.children_s = std::max(other.children_s, *as_told->second.cpu_s);
      }
      sum += other.children_s;
    }
    return sum;
  }

  // Disk bytes that they took over; unset if that cannot be told of one.
  std::optional<ProcessIo> taken_over() {
    const auto first = read_children_io(root_, first_);
    if (!first) return std::nullopt;
    ProcessIo sum = *first;
    for (auto& [pid, other] : others_) {
      if (const auto io = other.ended ? Result<ProcessIo>(other.io) : read_children_io(root_, pid)) other.io = *io;
      sum.read_bytes += other.io.read_bytes;
      sum.written_bytes += other.io.written_bytes;
    }
    return sum;
  }

  std::set<int> alive() const {
    std::set<int> pids{first_};
    for (const auto& [pid, other] : others_)
      if (!other.ended) pids.insert(pid);
    return pids;
  }

 private:
  struct Other {
    std::optional<std::uint64_t> start_ticks;
    double children_s = 0;
    ProcessIo io;
    bool ended = false;
  };
  HostRoot root_;
  int first_;
  std::shared_ptr<const ProcessRoots> more_;
  std::map<int, Other> others_;
};

SensorInfo tree_info(int root_pid) {
  using enum Behaviour;
  SensorInfo info;
  info.name = "tree";
  info.interface = "procfs";
  info.interval = std::chrono::seconds(1);
  info.note = fmt::format("processes below pid {}, itself excluded", root_pid);
  info.channels = {
      resource(Scope::tree, "cpu_s", Quantity::duration, "s", counter,
               "user and system time, ended processes included"),
      resource(Scope::tree, "rss_sum_bytes", Quantity::bytes, "B", gauge, "shared pages counted in every process"),
      resource(Scope::tree, "pss_bytes", Quantity::bytes, "B", gauge,
               "shared pages counted once; read about every 5 s"),
      resource(Scope::tree, "process_count", Quantity::count, "", gauge),
      resource(Scope::tree, "thread_count", Quantity::count, "", gauge),
      resource(Scope::tree, "disk_read_bytes", Quantity::bytes, "B", counter),
      resource(Scope::tree, "disk_written_bytes", Quantity::bytes, "B", counter),
  };
  return info;
}

class TreeSensor final : public Sensor {
 public:
  TreeSensor(const Host& host, int root_pid, std::shared_ptr<const ProcessRoots> more)
      : Sensor(tree_info(root_pid)),
        root_(host.root),
        clock_(host.clock),
        roots_(host.root, root_pid, std::move(more)),
        membership_(host.root, root_pid) {}

  Result<void> read(Readings& out) override {
    roots_.find_new(members_, membership_);
    // The roots come first: a child that ends while the others are read is then missing once, never counted twice.
    const auto waited_s = roots_.waited_s();
    if (!waited_s) return tl::unexpected(waited_s.error());
    const Members before = members_;
    update_members();
    const double cpu_s = cpu_.update(before, members_, *waited_s);
    const auto taken_over = roots_.taken_over();
    io_.update(before, members_, roots_.alive(), taken_over);
    double rss = 0;
    std::int64_t threads = 0, processes = 0;
    for (const auto& [pid, member] : members_) {
      if (member.stat.zombie) continue;
      ++processes;
      rss += member.stat.rss_bytes;
      threads += member.stat.threads;
    }
    out.add({cpu_s, rss, pss_if_due(), static_cast<double>(processes), static_cast<double>(threads), io_.read(),
             io_.written()});
    return {};
  }

 private:
  void update_members() {
    membership_.find_new(members_);
    for (auto it = members_.begin(); it != members_.end();) {
      auto& [pid, member] = *it;
      const auto stat = read_process_stat(root_, pid);
      // Another start time is another process under a number used again.
      if (!stat || stat->start_ticks != member.stat.start_ticks) {
        it = members_.erase(it);
        continue;
      }
      // An orphan's new parent must not hide who its first one was.
      const int first_parent = member.stat.ppid;
      member.stat = *stat;
      member.stat.ppid = first_parent;
      const auto io = read_process_io(root_, pid);
      if (io) member.io = *io;
      // One that has just ended keeps what is known of it.
      member.io_unknown = !io && (!member.io || io.error().code == ErrorCode::permission_denied);
      ++it;
    }
  }

  // Sum over the tree, or missing: between readings, and while some process may not be looked into.
  std::optional<double> pss_if_due() {
    const auto begin = clock_->now();
    if (begin < next_pss_) return std::nullopt;
    std::optional<double> sum = 0;
    for (const auto& [pid, member] : members_) {
      const auto pss = read_pss(root_, pid);
      if (pss)
        sum = sum ? std::optional(*sum + *pss) : sum;
      else if (pss.error().code != ErrorCode::not_found)  // not found: it has just ended
        sum.reset();
    }
    next_pss_ = begin + std::max(kPssInterval, (clock_->now() - begin) * kPssShare);
    return sum;
  }

  HostRoot root_;
  std::shared_ptr<Clock> clock_;
  Roots roots_;
  Membership membership_;
  Members members_;
  CpuSum cpu_;
  IoSum io_;
  MonoTime next_pss_{};
};

}  // namespace

std::shared_ptr<Sensor> make_tree_sensor(const Host& host, int root_pid, std::shared_ptr<const ProcessRoots> more) {
  return std::make_shared<TreeSensor>(host, root_pid, std::move(more));
}

}  // namespace ergometer::procfs
