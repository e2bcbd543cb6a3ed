// Seats: of all processes of a launch on one machine one is elected to measure it, the others register with it. By
// locks and small files in node-local storage; nothing here touches shared storage. Used by `ergometer run` and
// `ergometer step`.
//
//   FOLDER/ergometer-UID/LAUNCH.MACHINE/N/   the N-th run of the launch here (a rank takes part in each once)
//     door.lock      held for the moments in which somebody comes in or the leader leaves
//     leader.lock    held by the process that measures, as long as it lives
//     leader.json    who that is, and where the record is
//     closed         nobody is let in any more
//     members/       a .json (member.hpp) and a .lock, held while it lives, for each process
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cluster/file_lock.hpp"
#include "cluster/machine.hpp"
#include "cluster/member.hpp"

namespace ergometer {

// Where the record is that a leader writes.
struct RecordPlace {
  std::filesystem::path run, node;  // RUN and RUN/nodes/NODE, absolute
};

// One process's files in the folder of a run; its lock is held until this ends.
class Registration {
 public:
  [[nodiscard]] static Result<Registration> create(const std::filesystem::path& members, Member self);
  // Writes what is now known of this process.
  [[nodiscard]] Result<void> update(const std::function<void(Member&)>& change);
  [[nodiscard]] const Member& self() const { return self_; }
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  Registration(std::filesystem::path file, FileLock lock, Member self)
      : file_(std::move(file)), lock_(std::move(lock)), self_(std::move(self)) {}
  std::filesystem::path file_;
  FileLock lock_;
  Member self_;
};

// The process that measures. When it ends without close(), whatever the reason, nobody is let in any more.
class Leader {
 public:
  // The record is there; the commands of those who wait may begin. Errors: io.
  [[nodiscard]] Result<void> open(const RecordPlace& place);
  // Nothing is measured: those who wait learn why.
  void give_up(const Error& why);
  // All that have registered, this process included, in order of rank.
  [[nodiscard]] std::vector<Member> members() const;
  // Lets nobody in any more, if no other member lives; else returns false and everything goes on.
  [[nodiscard]] bool close();
  [[nodiscard]] Registration& registration() { return registration_; }
  [[nodiscard]] bool leads_step() const { return step_; }

 private:
  friend class SeatTaker;
  Leader(std::filesystem::path folder, FileLock lock, Registration registration, bool step)
      : folder_(std::move(folder)), lock_(std::move(lock)), registration_(std::move(registration)), step_(step) {}
  [[nodiscard]] Result<void> tell(const char* state, const RecordPlace& place, const Error& why = {}) const;
  std::filesystem::path folder_;
  FileLock lock_;
  Registration registration_;
  bool step_;
};

// A process whose node another one measures.
class Follower {
 public:
  struct Opened {
    RecordPlace place;
  };
  struct Refused {
    Error why;  // the leader's
  };
  struct Lost {};       // the leader is gone
  struct Cancelled {};  // by `cancelled`
  using Opening = std::variant<Opened, Refused, Lost, Cancelled>;
  // Waits, as long as the leader lives, until the record is there; `cancelled` is asked every few milliseconds.
  [[nodiscard]] Opening wait(const std::function<bool()>& cancelled) const;
  [[nodiscard]] bool leader_lives() const { return leader_lock_.is_taken(); }
  // "pid 4711 (rank 0)", for messages.
  [[nodiscard]] std::string leader_name() const;
  // Unset where node-local storage took no more files: the leader does not know of this process then.
  [[nodiscard]] std::optional<Registration>& registration() { return registration_; }

 private:
  friend class SeatTaker;
  Follower(std::filesystem::path folder, FileLock leader_lock, std::optional<Registration> registration)
      : folder_(std::move(folder)), leader_lock_(std::move(leader_lock)), registration_(std::move(registration)) {}
  std::filesystem::path folder_;
  FileLock leader_lock_;
  std::optional<Registration> registration_;
};

// No node-local storage can be used.
struct Alone {
  Error why;
};

using Seat = std::variant<Leader, Follower, Alone>;

struct SeatRequest {
  std::string launch;  // Launch::key; with a run folder of its own, more than that
  Machine machine;
  Member self;
  bool step = false;  // leads a whole step: a rank may then take part in several commands of it
};

// Takes a seat in the launch's present run on this machine, or in its next one if this rank took part in the present
// one already, its leader is gone or it is over. Waits a few milliseconds, at most 5 s for one stopped in the door.
[[nodiscard]] Seat take_seat(const std::vector<std::filesystem::path>& folders, const SeatRequest& request);

// The same, but only behind the leader of a step; unset if there is none now.
[[nodiscard]] std::optional<Follower> follow_step(const std::vector<std::filesystem::path>& folders,
                                                  const SeatRequest& request);

// Candidates for node-local storage, best first: XDG_RUNTIME_DIR, /dev/shm, /tmp; with ERGOMETER_LOCAL_DIR that alone.
[[nodiscard]] std::vector<std::filesystem::path> local_folders(const Environment& environment);

}  // namespace ergometer
