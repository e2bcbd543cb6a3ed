#include "study/study_journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

namespace fs = std::filesystem;
using JournalJson = nlohmann::ordered_json;
constexpr std::size_t kMaxJournal = 1u << 30;

JournalJson optional_json(const std::optional<double>& value) { return value ? JournalJson(*value) : JournalJson(); }
std::optional<double> optional_from(const JournalJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

RunEnd end_from(const JournalJson& json) {
  RunEnd end;
  end.exit_code = json.at("exit_code").get<int>();
  end.timed_out = json.value("timed_out", false);
  end.verdict = verdict_of(json.at("verdict").get<std::string>()).value_or(Verdict::failed);
  end.reasons = json.at("reasons").get<std::vector<std::string>>();
  for (const auto& [name, value] : json.at("metrics").items()) {
    StudyValue& metric = end.metrics[name];
    metric.value = value.at(0).get<double>();
    if (value.size() > 1) metric.uncertainty = value.at(1).get<double>();
  }
  end.seconds = json.value("seconds", 0.0);
  end.energy_j = optional_from(json, "energy_j");
  end.start_celsius = optional_from(json, "start_celsius");
  for (const auto& seen : json.value("controls", JournalJson::array()))
    end.controls.push_back({seen.at(0).get<std::string>(), seen.at(1).get<std::string>(), seen.at(2).get<std::string>()});
  return end;
}

void take_line(const JournalJson& json, StudyState& state) {
  const auto at = json.at("at").get<std::int64_t>();
  state.first_unix_s = std::min(state.first_unix_s.value_or(at), at);
  state.last_unix_s = std::max(state.last_unix_s.value_or(at), at);
  const auto kind = json.at("kind").get<std::string>();
  if (kind == "skipped" || kind == "submitted") {
    for (const auto run : json.at("runs").get<std::vector<std::size_t>>()) {
      auto& one = state.runs.at(run);
      if (kind == "skipped")
        one.skipped = true;
      else
        one.job = json.at("job").get<std::string>();
    }
    return;
  }
  auto& run = state.runs.at(json.at("run").get<std::size_t>());
  if (kind == "started") {
    run.order = json.at("order").get<int>();
    run.folder = json.at("folder").get<std::string>();
    run.started_unix_s = at;
    run.process = {json.at("pid").get<int>(), json.at("ticks").get<std::uint64_t>(), json.value("boot_id", "")};
    run.end.reset();
    state.started = std::max(state.started, *run.order + 1);
  } else if (kind == "ended") {
    run.end = end_from(json);
    run.process.reset();
    run.job.clear();
  }
}

Result<void> read_journal_file(const fs::path& file, StudyState& state) {
  const auto text = read_file(file, kMaxJournal);
  if (!text) return tl::unexpected(text.error());
  std::size_t line = 0;
  for (std::size_t at = 0; at < text->size();) {
    const auto end = text->find('\n', at);
    if (end == std::string::npos) break;  // cut while it was written
    ++line;
    // Whatever the library or a number outside the plan says is one error here.
    try {
      if (end > at) take_line(JournalJson::parse(text->begin() + static_cast<std::ptrdiff_t>(at), text->begin() + static_cast<std::ptrdiff_t>(end)), state);
    } catch (const std::exception& error) {
      return fail(ErrorCode::corrupt, fmt::format("{}:{}: {}", file.string(), line, error.what()),
                  "take the line out if it was damaged; the run that it is about will run again");
    }
    at = end + 1;
  }
  return {};
}

bool is_journal(const std::string& name) { return name.starts_with("journal") && name.ends_with(".jsonl"); }

std::string this_boot() {
  const auto text = read_file("/proc/sys/kernel/random/boot_id", 4096);
  return text ? std::string(trim(*text)) : std::string();
}

}  // namespace

Result<StudyState> read_study_state(const fs::path& study, const Plan& plan) {
  StudyState state;
  state.runs.resize(plan.runs.size());
  for (const auto& name : list_dir(study))
    if (is_journal(name))
      if (auto read = read_journal_file(study / name, state); !read) return tl::unexpected(read.error());
  return state;
}

Result<StudyJournal> StudyJournal::open(const fs::path& study, const std::string& name) {
  const auto file = study / name;
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return tl::unexpected(errno_error("open", file, errno));
  StudyJournal journal(file, fd);
  const auto text = read_file(file, kMaxJournal);
  if (!text) return tl::unexpected(text.error());
  // What was cut is overwritten by the next line.
  const auto last = text->rfind('\n');
  const auto whole = last == std::string::npos ? 0 : last + 1;
  if (::ftruncate(fd, static_cast<off_t>(whole)) != 0 || ::lseek(fd, 0, SEEK_END) < 0)
    return tl::unexpected(errno_error("open", file, errno));
  return journal;
}

StudyJournal::StudyJournal(StudyJournal&& other) noexcept
    : file_(std::move(other.file_)), fd_(std::exchange(other.fd_, -1)) {}

StudyJournal::~StudyJournal() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> StudyJournal::append(std::string line) {
  line += '\n';
  const off_t before = ::lseek(fd_, 0, SEEK_CUR);
  std::size_t written = 0;
  while (written < line.size()) {
    const auto n = ::write(fd_, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : ENOSPC;
      if (::ftruncate(fd_, before) == 0) static_cast<void>(::lseek(fd_, before, SEEK_SET));
      return tl::unexpected(errno_error("write", file_, error));
    }
    written += static_cast<std::size_t>(n);
  }
  if (::fdatasync(fd_) != 0) return tl::unexpected(errno_error("sync", file_, errno));
  return {};
}

Result<void> StudyJournal::started(std::size_t run, int order, const std::string& folder, const ProcessId& process) {
  return append(JournalJson{{"kind", "started"}, {"at", std::time(nullptr)}, {"run", run}, {"order", order},
                            {"folder", folder}, {"pid", process.pid}, {"ticks", process.started_ticks},
                            {"boot_id", process.boot_id}}
                    .dump());
}

Result<void> StudyJournal::ended(std::size_t run, const RunEnd& end) {
  JournalJson json{{"kind", "ended"}, {"at", std::time(nullptr)}, {"run", run}, {"exit_code", end.exit_code},
                   {"verdict", to_word(end.verdict)}, {"reasons", end.reasons}};
  if (end.timed_out) json["timed_out"] = true;
  json["metrics"] = JournalJson::object();
  for (const auto& [name, metric] : end.metrics) {
    JournalJson value = JournalJson::array({metric.value});
    if (metric.uncertainty) value.push_back(*metric.uncertainty);
    json["metrics"][name] = std::move(value);
  }
  json["seconds"] = end.seconds;
  json["energy_j"] = optional_json(end.energy_j);
  json["start_celsius"] = optional_json(end.start_celsius);
  if (!end.controls.empty()) json["controls"] = JournalJson::array();
  for (const auto& seen : end.controls) json["controls"].push_back({seen.name, seen.requested, seen.effective});
  return append(json.dump(-1, ' ', false, JournalJson::error_handler_t::replace));
}

Result<void> StudyJournal::skipped(const std::vector<std::size_t>& runs) {
  return append(JournalJson{{"kind", "skipped"}, {"at", std::time(nullptr)}, {"runs", runs}}.dump());
}

Result<void> StudyJournal::submitted(const std::vector<std::size_t>& runs, const std::string& job) {
  return append(JournalJson{{"kind", "submitted"}, {"at", std::time(nullptr)}, {"runs", runs}, {"job", job}}.dump());
}

std::optional<ProcessId> process_id(int pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!stat) return std::nullopt;
  const auto behind_name = stat->rfind(')');
  if (behind_name == std::string::npos) return std::nullopt;
  const auto fields = split(std::string_view(*stat).substr(behind_name + 2), ' ');
  if (fields.size() < 20 || fields[0] == "Z") return std::nullopt;
  const auto ticks = parse_uint(fields[19]);
  if (!ticks) return std::nullopt;
  return ProcessId{pid, *ticks, this_boot()};
}

bool still_runs(const ProcessId& process) {
  const auto now = process_id(process.pid);
  return now && now->started_ticks == process.started_ticks && now->boot_id == process.boot_id;
}

}  // namespace ergometer
