#include "cluster/seat.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.hpp"
#include "base/json_object.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kLeaderSchema = "ergometer.leader/1";
constexpr Nanos kDoorPatience = 5s;
constexpr Nanos kLookEvery = 5ms;
constexpr int kMostRuns = 10000;                 // of one launch on one machine
constexpr std::chrono::hours kKeepAbandoned{1};  // what nobody has used for so long is swept away

struct LeaderNote {
  int pid = 0;
  std::optional<int> rank;
  std::string state, run, node, message, hint;
  bool step = false;
};

std::optional<LeaderNote> read_note(const fs::path& folder) {
  const auto file = folder / "leader.json";
  const auto text = read_file(file);
  if (!text) return std::nullopt;
  LeaderNote note;
  const auto read = read_json(*text, file.string(), kLeaderSchema, [&](JsonObject& o) {
    o.read("pid", note.pid);
    o.read("rank", note.rank);
    o.read("state", note.state);
    o.read("run", note.run);
    o.read("node", note.node);
    o.read("message", note.message);
    o.read("hint", note.hint);
    o.read("step", note.step);
  });
  return read ? std::optional(note) : std::nullopt;
}

Result<void> make_private_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return tl::unexpected(errno_error("create", path, errno));
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return tl::unexpected(errno_error("inspect", path, errno));
  // Storage like /tmp is everybody's: what somebody else made there is not to be trusted.
  if (!S_ISDIR(st.st_mode) || st.st_uid != ::geteuid() || (st.st_mode & 077) != 0)
    return fail(ErrorCode::permission_denied, fmt::format("{} is not a private folder of this user", path.string()),
                "remove it, or name another place with ERGOMETER_LOCAL_DIR");
  return {};
}

void mark_closed(const fs::path& folder) {
  const int fd = ::open((folder / "closed").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
}

bool is_closed(const fs::path& folder) {
  std::error_code ec;
  return fs::exists(folder / "closed", ec);
}

std::string member_prefix(const Member& member) { return member.rank ? fmt::format("rank{}-", *member.rank) : "rank-"; }

bool took_part(const fs::path& members, const Member& self) {
  if (!self.rank) return false;
  const auto names = list_dir(members);
  return std::ranges::any_of(names, [&](const auto& name) { return name.starts_with(member_prefix(self)); });
}

// Folders of launches that nobody has used for an hour and that have no leader.
void sweep(const fs::path& top) {
  std::error_code ec;
  for (const auto& launch : list_dir(top)) {
    const auto changed = fs::last_write_time(top / launch, ec);
    if (ec || fs::file_time_type::clock::now() - changed < kKeepAbandoned) continue;
    bool used = false;
    for (const auto& number : list_dir(top / launch)) {
      if (!fs::exists(top / launch / number / "leader.lock", ec)) continue;
      const auto lock = FileLock::open(top / launch / number / "leader.lock");
      used = used || !lock || lock->is_taken();
    }
    if (!used) fs::remove_all(top / launch, ec);
  }
}

}  // namespace

Result<Registration> Registration::create(const fs::path& members, Member self) {
  for (int n = 0; n < kMostRuns; ++n) {
    const auto name = fmt::format("{}{}-{}", member_prefix(self), self.pid, n);
    const auto lock_file = members / (name + ".lock");
    std::error_code ec;
    if (fs::exists(lock_file, ec)) continue;  // the door is held: nobody else is here
    auto lock = FileLock::open(lock_file);
    if (!lock) return tl::unexpected(lock.error());
    if (!lock->take_within(1s)) return fail(ErrorCode::io, fmt::format("cannot lock {}", lock_file.string()));
    Registration registration(members / (name + ".json"), std::move(*lock), std::move(self));
    if (auto written = registration.update([](Member&) {}); !written) {
      fs::remove(lock_file, ec);
      return tl::unexpected(written.error());
    }
    return registration;
  }
  return fail(ErrorCode::exists, fmt::format("too many members in {}", members.string()));
}

Result<void> Registration::update(const std::function<void(Member&)>& change) {
  change(self_);
  return write_file_atomically(file_, member_to_json(self_));
}

Result<void> Leader::tell(const char* state, const RecordPlace& place, const Error& why) const {
  nlohmann::json json{{"schema", kLeaderSchema},   {"pid", registration_.self().pid}, {"state", state},
                      {"run", place.run.string()}, {"node", place.node.string()},     {"step", step_}};
  if (registration_.self().rank) json["rank"] = *registration_.self().rank;
  if (!why.message.empty()) {
    json["message"] = why.message;
    json["hint"] = why.hint;
  }
  return write_file_atomically(folder_ / "leader.json",
                               json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Result<void> Leader::open(const RecordPlace& place) { return tell("open", place); }

void Leader::give_up(const Error& why) {
  mark_closed(folder_);
  // If that cannot be written either, they see that this process is gone.
  if (const auto told = tell("refused", {}, why); !told) lock_.release();
}

std::vector<Member> Leader::members() const {
  std::vector<Member> all;
  const auto folder = folder_ / "members";
  for (const auto& name : list_dir(folder)) {
    if (!name.ends_with(".json")) continue;
    const auto file = folder / name;
    const auto lock = FileLock::open(fs::path(file).replace_extension(".lock"));
    // The lock first: what a process wrote at its end is then in the text.
    const bool own = file == registration_.file();
    const bool lives = own || (lock && lock->is_taken());
    const auto text = read_file(file);
    auto member = text ? member_from_json(*text, file.string()) : tl::unexpected(text.error());
    if (!member) continue;
    member->lives = lives;
    member->own = own;
    all.push_back(std::move(*member));
  }
  std::ranges::stable_sort(all, {}, [](const Member& m) { return m.rank.value_or(INT32_MAX); });
  return all;
}

bool Leader::close() {
  const auto door = FileLock::open(folder_ / "door.lock");
  // Somebody stopped in the door for so long must not keep the run from ending.
  if (door && door->take_within(kDoorPatience)) {
    const auto all = members();
    if (std::ranges::any_of(all, [](const Member& m) { return m.lives && !m.own; })) return false;
  }
  mark_closed(folder_);
  return true;
}

std::string Follower::leader_name() const {
  const auto note = read_note(folder_);
  if (!note) return "another process";
  return note->rank ? fmt::format("pid {} (rank {})", note->pid, *note->rank) : fmt::format("pid {}", note->pid);
}

Follower::Opening Follower::wait(const std::function<bool()>& cancelled) const {
  for (;;) {
    const bool lives = leader_lives();
    if (const auto note = read_note(folder_)) {
      if (note->state == "refused") return Refused{Error{ErrorCode::unavailable, note->message, note->hint}};
      if (lives && note->state == "open") return Opened{{note->run, note->node}};
    }
    if (!lives) return Lost{};
    if (cancelled()) return Cancelled{};
    std::this_thread::sleep_for(kLookEvery);
  }
}

// Goes through the places and runs until there is a seat.
class SeatTaker {
 public:
  SeatTaker(const SeatRequest& request, bool step_only) : request_(request), step_only_(step_only) {}

  // Unset: no seat in this storage.
  std::optional<Seat> in(const fs::path& storage) {
    const auto top = storage / fmt::format("ergometer-{}", ::geteuid());
    const auto launch = top / fmt::format("{}.{}", request_.launch, request_.machine.id());
    std::error_code ec;
    if (step_only_ && !fs::exists(launch, ec)) return std::nullopt;
    for (const auto& folder : {top, launch})
      if (auto made = make_private_folder(folder); !made) return note(made.error());
    if (!step_only_) sweep(top);
    for (int number = 1; number < kMostRuns; ++number) {
      const auto folder = launch / fmt::to_string(number);
      if (step_only_ && !fs::exists(folder, ec)) return std::nullopt;
      auto seat = in_run(folder);
      if (!seat) return note(seat.error());
      if (*seat) return std::move(*seat);
    }
    return std::nullopt;
  }

  Error why{ErrorCode::io, "there is no node-local storage", "name a folder with ERGOMETER_LOCAL_DIR"};

 private:
  std::optional<Seat> note(Error error) {
    why = std::move(error);
    return std::nullopt;
  }

  // Unset: the next run may have a seat.
  Result<std::optional<Seat>> in_run(const fs::path& folder) {
    for (const auto& part : {folder, folder / "members"})
      if (auto made = make_private_folder(part); !made) return tl::unexpected(made.error());
    const auto door = FileLock::open(folder / "door.lock");
    if (!door) return tl::unexpected(door.error());
    if (!door->take_within(kDoorPatience))
      return fail(ErrorCode::timeout, fmt::format("{} stays locked", (folder / "door.lock").string()),
                  "a process of this launch is stopped: continue it, or end it");
    if (is_closed(folder)) return std::nullopt;
    auto lock = FileLock::open(folder / "leader.lock");
    if (!lock) return tl::unexpected(lock.error());
    const auto present = read_note(folder);
    const bool led = lock->is_taken();
    if (step_only_ && !(led && present && present->step)) return std::nullopt;
    if (!(led && present && present->step) && took_part(folder / "members", request_.self)) return std::nullopt;
    return led ? follow(folder, std::move(*lock)) : lead(folder, std::move(*lock), present.has_value());
  }

  Result<std::optional<Seat>> follow(const fs::path& folder, FileLock lock) {
    auto registration = Registration::create(folder / "members", request_.self);
    std::optional<Registration> registered;
    if (registration) registered = std::move(*registration);
    return std::optional<Seat>(Follower(folder, std::move(lock), std::move(registered)));
  }

  Result<std::optional<Seat>> lead(const fs::path& folder, FileLock lock, bool had_leader) {
    if (had_leader) {
      mark_closed(folder);
      return std::nullopt;
    }
    if (!lock.try_take()) return fail(ErrorCode::io, fmt::format("cannot lock {}", (folder / "leader.lock").string()));
    auto registration = Registration::create(folder / "members", request_.self);
    if (!registration) return tl::unexpected(registration.error());
    Leader leader(folder, std::move(lock), std::move(*registration), request_.step);
    if (auto told = leader.tell("starting", {}); !told) return tl::unexpected(told.error());
    return std::optional<Seat>(std::move(leader));
  }

  const SeatRequest& request_;
  bool step_only_;
};

Seat take_seat(const std::vector<fs::path>& folders, const SeatRequest& request) {
  SeatTaker taker(request, false);
  for (const auto& folder : folders)
    if (auto seat = taker.in(folder)) return std::move(*seat);
  if (taker.why.hint.empty()) taker.why.hint = "name a folder that this machine alone has with ERGOMETER_LOCAL_DIR";
  return Alone{taker.why};
}

std::optional<Follower> follow_step(const std::vector<fs::path>& folders, const SeatRequest& request) {
  SeatTaker taker(request, true);
  for (const auto& folder : folders)
    if (auto seat = taker.in(folder))
      if (auto* follower = std::get_if<Follower>(&*seat)) return std::move(*follower);
  return std::nullopt;
}

std::vector<fs::path> local_folders(const Environment& environment) {
  const auto named = [&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() && found->second.starts_with('/') ? fs::path(found->second) : fs::path();
  };
  if (const auto chosen = named("ERGOMETER_LOCAL_DIR"); !chosen.empty()) return {chosen};
  std::vector<fs::path> folders{"/dev/shm", "/tmp"};
  if (const auto runtime = named("XDG_RUNTIME_DIR"); !runtime.empty()) folders.insert(folders.begin(), runtime);
  return folders;
}

}  // namespace ergometer
