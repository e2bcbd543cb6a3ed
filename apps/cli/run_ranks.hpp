// What `ergometer run` and `ergometer step` do as one of several ranks of a launch: the one that is elected on a node
// measures its part of the run, the others run their command and register with it. Used by run and step.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/clock_service.hpp"
#include "cluster/clock_watch.hpp"
#include "cluster/launch.hpp"
#include "cluster/machine.hpp"
#include "cluster/part.hpp"
#include "cluster/seat.hpp"
#include "command.hpp"
#include "measure/session.hpp"
#include "run_process.hpp"

namespace ergometer::cli {

// This process in its launch.
struct RankPlace {
  Launch launch;
  Machine machine;
  Whereabouts here;
  std::vector<std::filesystem::path> local_folders;
};

// Unset where no launcher's variables are; then no file was looked at.
[[nodiscard]] std::optional<RankPlace> find_rank(const Context& context, const Environment& environment);

// Where the run shall be; all ranks of a launch that share one have the same.
struct FolderWish {
  std::filesystem::path output;  // as given with -o; else empty: STORE/NAME-KEY
  std::filesystem::path store;
  std::string name;
};

// Takes this process's seat. Unset for a launch of one rank, which is an ordinary run (unless its step is measured).
[[nodiscard]] std::optional<Seat> take_rank_seat(const RankPlace& place, const FolderWish& wish,
                                                 const Environment& environment);

// That of the process that measures a whole step; its tasks are below `root_pid`.
[[nodiscard]] Seat take_step_seat(const RankPlace& place, int root_pid);

// One node's part of a run, on the side of the process that measures it. Used by one thread.
class NodePart {
 public:
  // `leader` is unset where node-local storage cannot be used: then nobody else on this node is known of.
  NodePart(RankPlace place, std::optional<Leader> leader, const Environment& environment);
  NodePart(const NodePart&) = delete;
  NodePart& operator=(const NodePart&) = delete;
  ~NodePart();

  // Waits a moment for the other ranks that belong here, since their GPUs count as well, then begins or joins the run
  // and fills in what a session needs to measure this part. A folder that STORE/NAME-KEY names already, of an earlier
  // run of this launch, is left alone: then -2, -3, ... Errors as of RunWriter::join.
  [[nodiscard]] Result<void> join(const FolderWish& wish, SessionOptions& options, const std::shared_ptr<Clock>& clock);
  // Whether other ranks on this machine can be known of.
  [[nodiscard]] bool has_seat() const { return leader_.has_value(); }
  // For Session::start, after join().
  [[nodiscard]] std::unique_ptr<RunWriter> take_writer() { return std::move(writer_); }
  [[nodiscard]] const RecordPlace& record() const { return record_; }
  // The node whose clock the others refer to, and which tells the summary.
  [[nodiscard]] bool is_reference() const { return is_reference_; }

  // The session measures: compares clocks, from now on beside the command.
  void started(Session& session);
  // Everything is ready: the other ranks' commands may begin.
  void open();
  // Nothing is measured: the other ranks learn why and end.
  void refuse(const Error& why);
  // Removes what join() made, as far as no other node may have begun to use it.
  void take_back();
  // Of this process's own command, or of the whole step where it has none.
  void command_begins();
  void command_ended(std::optional<int> exit_code, std::optional<int> signal, MonoTime at);
  // Takes up those who have registered or ended since the last look.
  void look();
  // True once all others have ended; nobody is let in any more then.
  [[nodiscard]] bool is_over();
  // Waits for the other ranks, and a moment for those that have not come yet; after a terminating signal for 5 s more.
  void wait_for_others(Signals& signals, Nanos period, const std::function<void()>& tick);
  // Tells the session how all ranks ended, and how the clocks lie. `tasks`: of ranks that did not register themselves.
  void finish(const std::vector<Member>& tasks = {});
  // The nodes that have no complete part yet, as far as they are known by name; waits up to `patience` for them.
  [[nodiscard]] std::vector<std::string> unfinished_nodes(Nanos patience) const;

 private:
  [[nodiscard]] Result<std::unique_ptr<RunWriter>> join_run(const FolderWish& wish, const Manifest& part) const;
  [[nodiscard]] bool is_of_one_node() const;
  void offer_clock();
  void note_ranks(RanksTogether together);
  [[nodiscard]] int expected_ranks() const;
  void wait_for_ranks() const;
  void update(const std::function<void(Member&)>& change);
  [[nodiscard]] std::vector<Member> members() const;

  RankPlace place_;
  std::optional<Leader> leader_;
  Member self_;
  std::unique_ptr<RunWriter> writer_;
  RecordPlace record_;
  std::string node_, reference_;
  bool is_reference_ = false;
  MonoTime begun_{};
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<ProcessRoots> roots_ = std::make_shared<ProcessRoots>();
  std::vector<Environment> known_devices_;
  std::size_t seen_news_ = 0;
  bool told_devices_ = false, told_namespace_ = false;
  Session* session_ = nullptr;
  std::unique_ptr<ClockServer> server_;
  std::unique_ptr<ClockWatch> watch_;
};

}  // namespace ergometer::cli
