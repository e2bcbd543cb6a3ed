#include "store/run_join.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/file.hpp"
#include "base/text.hpp"
#include "store/run_json.hpp"

namespace ergometer {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMaxManifest = 64 << 20;
constexpr int kMostNamesakes = 1000;

// A name that no other process on any machine uses at the same time.
std::string unique_name(const std::string& what, const Place* place) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format(".{}-{}-{}-{}", what, place ? file_name_of(place->hostname) : std::string(), ::getpid(), now);
}

// Whether a new run may begin in the folder: it holds only what interrupted writes left behind, and what other machines
// of this launch are about to put there.
bool may_begin_in(const fs::path& dir) {
  for (const std::string& name : list_dir(dir)) {
    std::error_code error;
    if (name.starts_with(".run-")) continue;
    if (!fs::is_regular_file(fs::symlink_status(dir / name, error)) || fs::file_size(dir / name, error) != 0)
      return false;
  }
  return true;
}

// Other machines may see a new name some moments late (caches of network file systems).
Result<Manifest> read_identity(const fs::path& file) {
  Result<std::string> text;
  for (int tries = 0; tries < 40; ++tries) {
    text = read_file(file, kMaxManifest);
    if (text || text.error().code != ErrorCode::not_found) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (!text) return tl::unexpected(text.error());
  return manifest_from_json(*text, file.string());
}

Result<Manifest> find_run(const fs::path& dir, const Parts& wanted) {
  auto found = read_identity(dir / "run.json");
  if (!found) return found;
  if (!found->parts)
    return fail(ErrorCode::exists, fmt::format("{} holds a run of one machine", dir.string()),
                "choose another name with -o, or remove the old run");
  if (found->parts->run_key != wanted.run_key)
    return fail(ErrorCode::exists,
                fmt::format("{} belongs to another launch: {}, this one is {}", dir.string(), found->parts->run_key,
                            wanted.run_key),
                "choose another name with -o, or remove the old run");
  return found;
}

// Gives `from` the further name `to`, if nobody has it. True: it is ours. On NFS an answer that was lost makes the
// second try fail although the first succeeded; the number of links tells.
Result<bool> link_once(const fs::path& from, const fs::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return true;
  const int reason = errno;
  struct stat status {};
  if (::stat(from.c_str(), &status) == 0 && status.st_nlink == 2) return true;
  if (reason == EEXIST) return false;
  Error error = errno_error("create", to, reason);
  if (reason == EPERM || reason == EOPNOTSUPP || reason == ENOSYS)
    error.hint =
        "this file system has no hard links, by which machines agree on a run: name a folder on another one, or "
        "one on each machine's own storage and join them with ergometer merge";
  return tl::unexpected(error);
}

// What another process put in place of a file of no bytes, or the file itself, is not told apart: it is removed only
// while it is empty, and run.json is never empty once it has its name.
void remove_empty(const fs::path& file) {
  std::error_code error;
  if (fs::exists(file, error) && fs::file_size(file, error) == 0 && !error) fs::remove(file, error);
}

}  // namespace

Result<Manifest> begin_or_find_run(const fs::path& dir, const Manifest& run) {
  if (!run.parts) return fail(ErrorCode::invalid_argument, "a run over several nodes needs the name of its launch");
  std::error_code error;
  const auto status = fs::status(dir, error);
  if (fs::exists(status) && !fs::is_directory(status))
    return fail(ErrorCode::exists, fmt::format("{} exists and is no folder", dir.string()),
                "choose another name with -o");
  fs::create_directories(dir, error);
  if (error) return tl::unexpected(errno_error("create", dir, error.value()));
  const fs::path file = dir / "run.json";
  remove_empty(file);
  if (fs::exists(file, error)) return find_run(dir, *run.parts);
  if (!may_begin_in(dir) && !fs::exists(file, error))
    return fail(ErrorCode::exists, fmt::format("{} exists and is not empty", dir.string()),
                "choose another name with -o, or remove the old run");
  const fs::path draft = dir / unique_name("run", run.place ? &*run.place : nullptr);
  auto written = write_file_atomically(draft, manifest_to_json(run));
  Result<bool> ours = false;
  if (written) ours = link_once(draft, file);
  fs::remove(draft, error);
  if (!written) return tl::unexpected(written.error());
  if (!ours) return tl::unexpected(ours.error());
  if (*ours) return run;
  return find_run(dir, *run.parts);
}

Result<std::string> claim_node(const fs::path& dir, Manifest part) {
  if (!part.place || part.place->node.empty())
    return fail(ErrorCode::invalid_argument, "a part of a run needs the name of its node");
  const fs::path nodes = dir / "nodes";
  const fs::path draft = nodes / unique_name("part", &*part.place);
  std::error_code error;
  for (const char* below : {"samples", "markers"}) {
    fs::create_directories(draft / below, error);
    if (error) return tl::unexpected(errno_error("create", draft / below, error.value()));
  }
  const std::string wanted = file_name_of(part.place->node);
  const std::string with_boot = fmt::format("{}-{}", wanted, file_name_of(part.place->boot_id.substr(0, 8)));
  Result<std::string> result = fail(ErrorCode::exists, fmt::format("too many machines call themselves {}", wanted));
  for (int n = 0; n < kMostNamesakes; ++n) {
    const std::string name = n == 0 ? wanted : n == 1 ? with_boot : fmt::format("{}-{}", with_boot, n);
    part.place->node = name;
    if (auto written = write_file_atomically(draft / "part.json", part_to_json(part)); !written) {
      result = tl::unexpected(written.error());
      break;
    }
    if (::rename(draft.c_str(), (nodes / name).c_str()) == 0) return name;
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) {
      result = tl::unexpected(errno_error("create", nodes / name, errno));
      break;
    }
    const fs::path theirs = nodes / name / "part.json";
    const auto text = read_file(theirs, kMaxManifest);
    const auto other = text ? part_from_json(*text, theirs.string()) : tl::unexpected(text.error());
    if (!other || !other->place || !other->place->same_machine(*part.place)) continue;
    result = fail(ErrorCode::exists, fmt::format("{} has a part of this machine already: {}", dir.string(), name),
                  "measure each machine once in a run, or choose another name with -o");
    break;
  }
  fs::remove_all(draft, error);
  return result;
}

}  // namespace ergometer
