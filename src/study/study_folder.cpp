#include "study/study_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMaxStudyFile = 4 << 20;
constexpr std::size_t kMaxPlan = 1u << 29;

// Its content is on disk, and so is its name.
Result<void> write_and_sync(const fs::path& file, std::string_view text) {
  if (auto written = write_file_atomically(file, text); !written) return written;
  for (const auto& path : {file, file.parent_path()}) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool synced = fd >= 0 && ::fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (!synced) return tl::unexpected(errno_error("sync", path, error));
  }
  return {};
}

// "line 12 was `batch = [16]` and is `batch = [32]`".
std::string first_difference(const std::string& was, const std::string& is) {
  const auto before = split(was, '\n'), now = split(is, '\n');
  for (std::size_t i = 0; i < std::max(before.size(), now.size()); ++i) {
    const auto old_line = i < before.size() ? before[i] : std::string_view("(nothing)");
    const auto new_line = i < now.size() ? now[i] : std::string_view("(nothing)");
    if (old_line != new_line)
      return fmt::format("line {} was `{}` and is `{}`", i + 1, trim(old_line), trim(new_line));
  }
  return "it is the same";
}

std::string overrides_text(const StudyOverrides& overrides) {
  std::string text;
  for (const auto& [name, value] : overrides.parameters) text += fmt::format(" --set {}={}", name, value);
  for (const auto& [name, levels] : overrides.levels) text += fmt::format(" --levels {}={}", name, fmt::join(levels, ","));
  if (overrides.executor) text += fmt::format(" --executor {}", to_word(*overrides.executor));
  if (overrides.design) text += fmt::format(" --design {}", to_word(*overrides.design));
  return text.empty() ? "no options" : text.substr(1);
}

// The lock's own message is about controls; here it is about studies.
Result<ControlLock> take_lock(const fs::path& file, const StudyFolder& study, const char* what, const char* remedy) {
  auto lock = ControlLock::take(file, fmt::format("study {} in {}", study.file.name, study.path.string()), 3000);
  if (lock || lock.error().code != ErrorCode::exists) return lock;
  const auto holder = read_file(file, 4096);
  const auto text = holder ? std::string(trim(*holder)) : std::string();
  const auto blank = text.find(' ');
  return fail(ErrorCode::exists,
              blank == std::string::npos ? fmt::format("{} by another program", what)
                                         : fmt::format("{} by PID {} ({})", what, text.substr(0, blank), text.substr(blank + 1)),
              remedy);
}

}  // namespace

Result<StudyFolder> create_study(const fs::path& path, const StudySource& source, Plan plan, StudyFile file) {
  std::error_code ec;
  if (fs::exists(path, ec) && !fs::is_empty(path, ec))
    return fail(ErrorCode::exists, fmt::format("{} exists and is no study", path.string()), "name another folder with -o");
  fs::create_directories(path / "runs", ec);
  if (ec) return tl::unexpected(errno_error("make", path, ec.value()));
  if (auto written = write_and_sync(path / "study.toml", source.text); !written) return tl::unexpected(written.error());
  // The plan comes last: with it the folder is a study.
  if (auto written = write_and_sync(path / "plan.json", plan_to_json(plan)); !written)
    return tl::unexpected(written.error());
  return StudyFolder{fs::absolute(path, ec), std::move(file), std::move(plan)};
}

bool is_study_folder(const fs::path& path) {
  std::error_code ec;
  return fs::is_regular_file(path / "plan.json", ec) && fs::is_regular_file(path / "study.toml", ec);
}

Result<StudyFolder> open_study(const fs::path& path) {
  if (!is_study_folder(path))
    return fail(ErrorCode::not_found, fmt::format("{} is no study", path.string()),
                "a study's folder holds study.toml and plan.json; `ergometer study run FILE` makes one");
  const auto text = read_file(path / "study.toml", kMaxStudyFile);
  if (!text) return tl::unexpected(text.error());
  const auto plan_text = read_file(path / "plan.json", kMaxPlan);
  if (!plan_text) return tl::unexpected(plan_text.error());
  auto plan = plan_from_json(*plan_text, (path / "plan.json").string());
  if (!plan) return tl::unexpected(plan.error());
  auto file = parse_study_file(*text, (path / "study.toml").string(), plan->overrides);
  if (!file) return tl::unexpected(file.error());
  if (auto fits = check_plan(*plan, *file, (path / "plan.json").string()); !fits) return tl::unexpected(fits.error());
  std::error_code ec;
  return StudyFolder{fs::absolute(path, ec), std::move(*file), std::move(*plan)};
}

Result<void> check_unchanged(const StudyFolder& study, const StudySource& source) {
  const auto text = read_file(study.path / "study.toml", kMaxStudyFile);
  if (!text) return tl::unexpected(text.error());
  const auto hint = fmt::format("begin a new study with -o FOLDER, or go on with the old one: ergometer study run {}",
                                study.path.string());
  if (*text != source.text)
    return fail(ErrorCode::exists,
                fmt::format("{} has changed since the study in {} began: {}", source.name, study.path.string(),
                            first_difference(*text, source.text)),
                hint);
  const auto& was = study.plan.overrides;
  if (!source.overrides.empty() && !(was == source.overrides))
    return fail(ErrorCode::exists,
                fmt::format("the study in {} began with {}, not with {}", study.path.string(), overrides_text(was),
                            overrides_text(source.overrides)),
                hint);
  return {};
}

Result<ControlLock> lock_study(const StudyFolder& study) {
  return take_lock(study.path / "lock", study, "this study is being run", "wait for it, or look at it: ergometer study status");
}

Result<ControlLock> lock_node(const ControlPlaces& places, const StudyFolder& study) {
  return take_lock(places.lock.parent_path() / "ergometer-study.lock", study, "this node is being used",
                   "two studies on one node would measure each other: wait until it has ended");
}

}  // namespace ergometer
