#include "cluster/slurm_job.hpp"

#include <algorithm>
#include <chrono>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

constexpr double kNoEnergy = 1.8e19;  // NO_VAL64 is 2^64 - 2; NO_VAL is 2^32 - 2
constexpr double kNoValue = 4294967294.0;

std::optional<double> scaled(std::string_view text) {
  static constexpr std::string_view kPrefixes = "KMGTP";
  text = trim(text);
  if (text.empty()) return std::nullopt;
  double factor = 1;
  if (const auto prefix = kPrefixes.find(text.back()); prefix != std::string_view::npos) {
    for (std::size_t i = 0; i <= prefix; ++i) factor *= 1024;
    text.remove_suffix(1);
  }
  const auto value = parse_double(text);
  if (!value || *value < 0) return std::nullopt;
  return *value * factor;
}

std::optional<double> joules(std::string_view text) {
  const auto value = scaled(text);
  if (!value || *value <= 0 || *value >= kNoEnergy || *value == kNoValue) return std::nullopt;
  return value;
}

std::optional<WallTime> unix_time(std::string_view text) {
  const auto s = parse_int(text);
  if (!s || *s <= 0) return std::nullopt;
  return wall_ns(*s * 1'000'000'000);
}

// "2026-11-30T22:20:54" of local time.
std::optional<WallTime> local_time(std::string_view text) {
  std::tm parts{};
  if (text.size() != 19 || !::strptime(std::string(text).c_str(), "%Y-%m-%dT%H:%M:%S", &parts)) return std::nullopt;
  parts.tm_isdst = -1;
  return wall_ns(static_cast<std::int64_t>(::mktime(&parts)) * 1'000'000'000);
}

// The word after KEY= where KEY begins a word; "" without one.
std::string_view word_after(std::string_view text, std::string_view key) {
  for (auto at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n' || text[at - 1] == '\t';
    const auto rest = text.substr(at + key.size());
    if (!begins || !rest.starts_with('=')) continue;
    const auto value = rest.substr(1);
    return value.substr(0, value.find_first_of(" \t\r\n"));
  }
  return {};
}

// "COMPLETED", and "CANCELLED" of "CANCELLED by 1000".
std::string state_word(std::string_view text) { return std::string(text.substr(0, text.find(' '))); }

std::string unless_none(std::string_view text) {
  return text == "(null)" || text == "None assigned" || text == "Unknown" || text == "N/A" ? std::string()
                                                                                           : std::string(text);
}

class Line {
 public:
  Line(const std::vector<std::string_view>& titles, const std::vector<std::string_view>& cells)
      : titles_(titles), cells_(cells) {}
  [[nodiscard]] std::string_view operator[](std::string_view title) const {
    const auto at = std::find(titles_.begin(), titles_.end(), title) - titles_.begin();
    return static_cast<std::size_t>(at) < cells_.size() ? cells_[static_cast<std::size_t>(at)] : std::string_view();
  }

 private:
  const std::vector<std::string_view>& titles_;
  const std::vector<std::string_view>& cells_;
};

SlurmStep step_of(const Line& line, std::string_view name) {
  SlurmStep step;
  step.name = name;
  step.title = line["JobName"];
  step.state = state_word(line["State"]);
  step.nodes = unless_none(line["NodeList"]);
  step.exit_code = line["ExitCode"];
  step.begin = unix_time(line["Start"]);
  step.end = unix_time(line["End"]);
  step.consumed_j = joules(line["ConsumedEnergyRaw"]);
  step.tasks = parse_double(line["NTasks"]);
  return step;
}

SlurmJob job_of(const Line& line) {
  SlurmJob job;
  job.id = line["JobIDRaw"];
  job.shown = line["JobID"];
  job.user = line["User"];
  job.account = line["Account"];
  job.name = line["JobName"];
  job.partition = line["Partition"];
  job.cluster = line["Cluster"];
  job.state = state_word(line["State"]);
  job.exit_code = line["ExitCode"];
  job.nodes = unless_none(line["NodeList"]);
  job.begin = unix_time(line["Start"]);
  job.end = unix_time(line["End"]);
  job.elapsed_s = parse_double(line["ElapsedRaw"]).value_or(0);
  job.tres = parse_tres(line["AllocTRES"]);
  job.memory_bytes = job_memory_bytes(line["AllocTRES"]);
  job.consumed_j = joules(line["ConsumedEnergyRaw"]);
  return job;
}

// A requeued job ran several times under one number.
void add_life(SlurmJob& job, SlurmJob&& next) {
  next.steps = std::move(job.steps);
  next.elapsed_s += job.elapsed_s;
  next.lives = job.lives + 1;
  if (job.begin) next.begin = job.begin;
  if (job.consumed_j) next.consumed_j = next.consumed_j.value_or(0) + *job.consumed_j;
  if (next.nodes.empty()) next.nodes = job.nodes;
  if (next.tres.empty()) next.tres = job.tres, next.memory_bytes = job.memory_bytes;
  job = std::move(next);
}

}  // namespace

std::map<std::string, double> parse_tres(std::string_view text) {
  std::map<std::string, double> out;
  for (const auto part : split(text, ',')) {
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = std::string(trim(part.substr(0, equals)));
    const auto amount = trim(part.substr(equals + 1));
    const auto value = scaled(amount);
    if (!value) continue;
    out[name] = name == "mem" && is_digit(amount.back()) ? *value * 1024 * 1024 : *value;
  }
  return out;
}

std::optional<double> job_memory_bytes(std::string_view text) {
  for (const auto key : {"AllocTRES", "TRES"}) {
    const auto tres = parse_tres(word_after(text, key));
    if (const auto memory = tres.find("mem"); memory != tres.end()) return memory->second;
  }
  // sacct's bare list; what else scontrol says of memory is what was asked for.
  if (text.find("TRES=") != std::string_view::npos || trim(text).find(' ') != std::string_view::npos) return std::nullopt;
  const auto tres = parse_tres(trim(text));
  const auto memory = tres.find("mem");
  return memory != tres.end() && memory->second > 0 ? std::optional(memory->second) : std::nullopt;
}

std::vector<SlurmJob> parse_sacct(std::string_view text) {
  std::vector<SlurmJob> jobs;
  const auto lines = split(text, '\n');
  const auto titles = split(lines.front(), '|');
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto cells = split(lines[i], '|');
    if (cells.size() != titles.size()) continue;
    const Line line(titles, cells);
    const auto id = line["JobIDRaw"];
    const auto dot = id.find('.');
    const auto job =
        std::find_if(jobs.begin(), jobs.end(), [&](const SlurmJob& j) { return j.id == id.substr(0, dot); });
    if (dot != std::string_view::npos) {
      if (job != jobs.end() && id.substr(dot + 1) != "extern") job->steps.push_back(step_of(line, id.substr(dot + 1)));
    } else if (job != jobs.end()) {
      add_life(*job, job_of(line));
    } else if (!id.empty()) {
      jobs.push_back(job_of(line));
    }
  }
  return jobs;
}

std::map<std::string, double> parse_node_cpus(std::string_view text) {
  std::map<std::string, double> cpus;
  for (const auto line : split(text, '\n')) {
    const auto name = word_after(line, "NodeName");
    if (const auto count = parse_double(word_after(line, "CPUTot")); !name.empty() && count && *count > 0)
      cpus[std::string(name)] = *count;
  }
  return cpus;
}

std::vector<SlurmJob> parse_scontrol_jobs(std::string_view text) {
  std::vector<SlurmJob> jobs;
  for (const auto line : split(text, '\n')) {
    SlurmJob job;
    job.id = word_after(line, "JobId");
    if (job.id.empty()) continue;
    job.shown = job.id;
    if (const auto array = word_after(line, "ArrayJobId"); !array.empty())
      job.shown = std::string(array) + "_" + std::string(word_after(line, "ArrayTaskId"));
    const auto user = word_after(line, "UserId");
    job.user = user.substr(0, user.find('('));
    job.account = unless_none(word_after(line, "Account"));
    job.name = word_after(line, "JobName");
    job.partition = word_after(line, "Partition");
    job.state = word_after(line, "JobState");
    job.exit_code = word_after(line, "ExitCode");
    job.nodes = unless_none(word_after(line, "NodeList"));
    job.begin = local_time(word_after(line, "StartTime"));
    if (job.state == "PENDING") job.begin.reset();
    if (job.state != "RUNNING" && job.state != "SUSPENDED" && job.state != "COMPLETING" && job.state != "PENDING")
      job.end = local_time(word_after(line, "EndTime"));
    if (job.begin && job.end) job.elapsed_s = seconds(*job.end - *job.begin);
    job.lives = 1 + static_cast<int>(parse_int(word_after(line, "Restarts")).value_or(0));
    for (const auto key : {"AllocTRES", "TRES"})
      if (job.tres.empty()) job.tres = parse_tres(word_after(line, key));
    job.memory_bytes = job_memory_bytes(line);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace ergometer
