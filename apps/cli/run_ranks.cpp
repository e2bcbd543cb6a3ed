#include "run_ranks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/file.hpp"
#include "base/text.hpp"
#include "store/run_json.hpp"

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Nanos kGather = 500ms;   // for the ranks of this node before its GPUs are looked for
constexpr Nanos kLateComers = 5s;  // since this process began: until then ranks that are missing may still come
constexpr Nanos kLookAtRanks = 50ms;
constexpr Nanos kAfterSignal = 5s;
constexpr int kMostFolders = 1000;
constexpr std::size_t kMostManifestBytes = 64 << 20;

// Names that people give to launches may come again; those that a batch system or mpirun makes do not.
bool may_come_again(const Launch& launch) { return launch.launcher == "torchrun" || launch.key.starts_with("named-"); }

std::optional<Manifest> part_at(const fs::path& run, const std::string& node) {
  const auto file = run / "nodes" / node / "part.json";
  const auto text = read_file(file, kMostManifestBytes);
  auto part = text ? part_from_json(*text, file.string()) : tl::unexpected(text.error());
  return part ? std::optional(std::move(*part)) : std::nullopt;
}

// A run all of whose parts are complete.
bool run_is_over(const fs::path& run) {
  bool any = false;
  for (const auto& node : list_dir(run / "nodes")) {
    const auto part = part_at(run, node);
    if (!part) continue;
    if (part->state != "complete") return false;
    any = true;
  }
  return any;
}

}  // namespace

std::optional<RankPlace> find_rank(const Context& context, const Environment& environment) {
  auto launch = find_launch(environment);
  if (!launch) return std::nullopt;
  RankPlace place{std::move(*launch), this_machine(context.host_root), find_whereabouts(context.host(), environment),
                  local_folders(environment)};
  return place;
}

std::optional<Seat> take_rank_seat(const RankPlace& place, const FolderWish& wish, const Environment& environment) {
  SeatRequest request;
  request.launch = place.launch.key;
  request.machine = place.machine;
  request.self = this_member(place.launch.rank, place.here.node, environment);
  if (auto follower = follow_step(place.local_folders, request)) return Seat(std::move(*follower));
  if (!place.launch.has_peers()) return std::nullopt;
  if (!wish.output.empty())
    request.launch +=
        fmt::format("-{:016x}", std::hash<std::string>{}(fs::absolute(wish.output).lexically_normal().string()));
  return take_seat(place.local_folders, request);
}

Seat take_step_seat(const RankPlace& place, int root_pid) {
  SeatRequest request;
  request.launch = place.launch.key;
  request.machine = place.machine;
  request.self = this_member(std::nullopt, place.here.node, {});
  request.self.pid = root_pid;
  request.step = true;
  return take_seat(place.local_folders, request);
}

NodePart::NodePart(RankPlace place, std::optional<Leader> leader, const Environment& environment)
    : place_(std::move(place)), leader_(std::move(leader)) {
  told_devices_ = leader_ && leader_->leads_step();  // whoever began the step said which of its GPUs count
  self_ = leader_ ? leader_->registration().self() : this_member(place_.launch.rank, place_.here.node, environment);
}

NodePart::~NodePart() = default;

void NodePart::update(const std::function<void(Member&)>& change) {
  change(self_);
  // Only for others to read: what the record gets is in self_.
  if (leader_)
    if (const auto written = leader_->registration().update(change); !written) return;
}

std::vector<Member> NodePart::members() const {
  if (!leader_) return {self_};
  auto all = leader_->members();
  std::erase_if(all, [&](const Member& m) { return m.own; });
  all.push_back(self_);
  return all;
}

// A step is measured from outside: its tasks need not be measured themselves.
int NodePart::expected_ranks() const {
  return leader_ && leader_->leads_step() ? 1 : place_.launch.local_size.value_or(1);
}

void NodePart::wait_for_ranks() const {
  const int expected = expected_ranks();
  const auto until = std::chrono::steady_clock::now() + kGather;
  while (leader_ && expected > 1 && static_cast<int>(leader_->members().size()) < expected &&
         std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(5ms);
}

Result<std::unique_ptr<RunWriter>> NodePart::join_run(const FolderWish& wish, const Manifest& part) const {
  const auto run = run_of(part, place_.launch);
  if (!wish.output.empty()) return RunWriter::join(wish.output, run, part);
  const std::string base = file_name_of(wish.name) + "-" + place_.launch.key;
  for (int n = 1; n < kMostFolders; ++n) {
    const auto folder = wish.store / (n == 1 ? base : fmt::format("{}-{}", base, n));
    if (may_come_again(place_.launch) && run_is_over(folder)) continue;
    auto writer = RunWriter::join(folder, run, part);
    // Without node-local storage an earlier run cannot be told from this one, which another rank here measures.
    if (writer || writer.error().code != ErrorCode::exists || !leader_) return writer;
  }
  return fail(ErrorCode::exists, fmt::format("no free name for a run in {}", wish.store.string()),
              "give one with -o RUN");
}

Result<void> NodePart::join(const FolderWish& wish, SessionOptions& options, const std::shared_ptr<Clock>& clock) {
  clock_ = clock;
  begun_ = clock->now();
  wait_for_ranks();
  for (const auto& member : members()) {
    if (std::ranges::find(known_devices_, member.devices) != known_devices_.end()) continue;
    known_devices_.push_back(member.devices);
    if (member.devices != self_.devices) options.discover.other_ranks.push_back(member.devices);
  }
  options.discover.more_roots = roots_;
  options.place = place_of(&place_.launch, place_.machine, place_.here);
  const auto part = first_manifest(options, *clock);
  auto writer = join_run(wish, part);
  if (!writer) return tl::unexpected(writer.error());
  record_ = {(*writer)->dir(), (*writer)->marker_root()};
  node_ = (*writer)->node();
  const auto& parts = (*writer)->run().parts;
  reference_ = parts ? parts->clock_reference : node_;
  is_reference_ = node_ == reference_;
  options.place->node = node_;
  writer_ = std::move(*writer);
  look();
  return {};
}

bool NodePart::is_of_one_node() const {
  const auto& launch = place_.launch;
  return launch.node_count == 1 || launch.expected_nodes.size() == 1 ||
         (launch.world_size && launch.world_size == launch.local_size);
}

// A run of one node needs no clock but its own.
void NodePart::offer_clock() {
  if (is_of_one_node()) return;
  auto server = ClockServer::open(place_.machine.clock());
  const auto written = server ? write_clock_address(record_.run / "clock.json", (*server)->address())
                              : Result<void>(tl::unexpected(server.error()));
  if (!written) {
    session_->warn(
        {"clock-exchange", "this node's clock cannot be asked: " + written.error().message, written.error().hint});
    return;
  }
  server_ = std::move(*server);
  server_->serve(clock_);
}

void NodePart::started(Session& session) {
  session_ = &session;
  if (is_reference_) {
    session.note_clock({reference_, ClockLink::Method::same, {}});
    offer_clock();
  } else {
    watch_ = std::make_unique<ClockWatch>(ClockWatch::Where{record_.run, reference_, place_.machine.clock()}, clock_,
                                          [&session](const ClockLink& link) { session.note_clock(link); });
  }
  if (!leader_)
    session.warn({"node-local-storage",
                  "node-local storage cannot be used: other ranks on this node are neither known nor waited for",
                  "name a folder that this node alone has with ERGOMETER_LOCAL_DIR"});
}

void NodePart::open() {
  if (!leader_) return;
  if (const auto opened = leader_->open(record_); !opened)
    session_->warn({"node-local-storage", opened.error().message, opened.error().hint});
}

void NodePart::refuse(const Error& why) {
  if (leader_) leader_->give_up(why);
}

void NodePart::take_back() {
  if (record_.node.empty()) return;
  std::error_code ec;
  fs::remove_all(record_.node, ec);
  // What other nodes may be about to join stays.
  if (!is_of_one_node()) return;
  ::rmdir((record_.run / "nodes").c_str());
  fs::remove(record_.run / "run.json", ec);
  ::rmdir(record_.run.c_str());
}

void NodePart::command_begins() {
  update([&](Member& m) { m.begin = clock_->now(); });
}

void NodePart::command_ended(std::optional<int> exit_code, std::optional<int> signal, MonoTime at) {
  update([&](Member& m) {
    m.end = at;
    m.exit_code = exit_code;
    m.signal = signal;
  });
}

void NodePart::note_ranks(RanksTogether together) {
  // A step has no command of its own.
  if (leader_ && leader_->leads_step()) std::erase_if(together.ranks, [](const RankEnd& r) { return r.rank < 0; });
  session_->note_ranks(std::move(together.ranks), std::move(together.aliases));
}

void NodePart::look() {
  const auto all = members();
  const auto news = all.size() + static_cast<std::size_t>(
                                     std::ranges::count_if(all, [](const Member& m) { return m.end.has_value(); }));
  // For a record that is cut, should this process be killed.
  if (session_ && std::exchange(seen_news_, news) != news) note_ranks(ranks_together(all, node_));
  for (const auto& member : all) {
    if (member.pid == self_.pid && member.pid_namespace == self_.pid_namespace) continue;
    const auto who = member.rank ? fmt::format("rank {}", *member.rank) : fmt::format("process {}", member.pid);
    if (member.pid_namespace != self_.pid_namespace) {
      if (session_ && !std::exchange(told_namespace_, true))
        session_->warn({"rank-namespace",
                        who + " runs in a process namespace of its own: its processes are not in the tree",
                        "start all ranks of a node in one container"});
      continue;
    }
    member.lives ? roots_->add(member.pid) : roots_->end(member.pid, member.cpu_s);
    const bool known = std::ranges::find(known_devices_, member.devices) != known_devices_.end();
    if (session_ && !known && !std::exchange(told_devices_, true))
      session_->warn({"late-rank",
                      who + " came when the GPUs of this node had been looked for: those that it alone may use are not "
                            "in the total",
                      "start all ranks of a node at about the same time"});
  }
}

bool NodePart::is_over() { return !leader_ || leader_->close(); }

void NodePart::wait_for_others(Signals& signals, Nanos period, const std::function<void()>& tick) {
  const int expected = expected_ranks();
  std::optional<MonoTime> give_up;
  for (;;) {
    look();
    const MonoTime now = clock_->now();
    const bool some_may_come =
        leader_ && !give_up && now - begun_ < kLateComers && static_cast<int>(members().size()) < expected;
    if ((give_up && now >= *give_up) || (!some_may_come && is_over())) break;
    if (sleep_or_signal(signals, kLookAtRanks, period, tick) && !give_up) give_up = now + kAfterSignal;
  }
  look();
}

void NodePart::finish(const std::vector<Member>& tasks) {
  auto all = members();
  // What tasks tell themselves is more exact than what others tell of them.
  for (const auto& task : tasks)
    if (std::ranges::none_of(all, [&](const Member& m) { return m.rank == task.rank; })) all.push_back(task);
  auto together = ranks_together(all, node_);
  session_->command_ended(together.exit_code, together.signal, together.begin, together.end);
  note_ranks(std::move(together));
  if (watch_) {
    auto outcome = watch_->stop();
    session_->note_clock(std::move(outcome.link));
    for (auto& warning : outcome.warnings) session_->warn(std::move(warning));
  }
  if (server_) ::unlink((record_.run / "clock.json").c_str());
}

std::vector<std::string> NodePart::unfinished_nodes(Nanos patience) const {
  const auto text = read_file(record_.run / "run.json", kMostManifestBytes);
  const auto run = text ? manifest_from_json(*text, "run.json") : tl::unexpected(text.error());
  if (!run) return {};
  const auto until = std::chrono::steady_clock::now() + patience;
  for (std::vector<std::string> finished;; std::this_thread::sleep_for(100ms)) {
    std::vector<std::string> left, waiting = run->nodes;
    std::size_t complete = 0;
    for (const auto& node : list_dir(record_.run / "nodes")) {
      if (node.starts_with('.')) continue;
      const bool known = std::ranges::find(finished, node) != finished.end();
      const auto part = known ? std::nullopt : part_at(record_.run, node);
      std::erase(waiting, node);
      if (part && part->place)
        std::erase_if(waiting, [&](const auto& n) { return std::ranges::count(part->place->aliases, n) > 0; });
      if (!known && part && part->state == "complete") finished.push_back(node);
      if (known || (part && part->state == "complete"))
        ++complete;
      else
        left.push_back(node);
    }
    left.insert(left.end(), waiting.begin(), waiting.end());
    const auto expected = run->parts && run->parts->nodes ? static_cast<std::size_t>(*run->parts->nodes) : 0;
    if (left.empty() && run->nodes.empty() && complete < expected)
      left.push_back(fmt::format("{} more", expected - complete));
    if (left.empty() || std::chrono::steady_clock::now() >= until) return left;
  }
}

}  // namespace ergometer::cli
