#include "cluster/slurm_query.hpp"

#include <fmt/format.h>

#include <chrono>
#include <iterator>

#include "base/text.hpp"
#include "device/tool.hpp"

namespace ergometer {
namespace {

using namespace std::chrono_literals;
constexpr Nanos kPatience = 20s;
constexpr std::size_t kMostOutput = 256 << 20;

bool is_job_id(const std::string& id) {
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.size() < 12 && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const auto line = id.find('_');
  return digits(std::string_view(id).substr(0, line)) &&
         (line == std::string::npos || digits(std::string_view(id).substr(line + 1)));
}

// As run_tool, for tables of a month of a large account.
Result<std::string> large_output(const std::vector<std::string>& words, const Environment& environment) {
  auto tool = Tool::start(words, environment);
  if (!tool) return tl::unexpected(tool.error());
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::string text;
  while (tool->read(text, end - std::chrono::steady_clock::now())) {
    if (text.size() > kMostOutput) return fail(ErrorCode::unavailable, words[0] + " writes more than 256 MiB");
    if (std::chrono::steady_clock::now() >= end)
      return fail(ErrorCode::timeout, words[0] + " does not end within 20 s");
  }
  const auto code = tool->exit_code(100ms);
  if (code && *code != 0) return fail(ErrorCode::unavailable, fmt::format("{} ends with {}", words[0], *code));
  return text;
}

std::vector<std::string> sacct_words(std::vector<std::string> more) {
  std::vector<std::string> words{"sacct", "--parsable2", "--duplicates", std::string("--format=") + kSacctColumns};
  std::move(more.begin(), more.end(), std::back_inserter(words));
  return words;
}

Result<std::string> sacct(std::vector<std::string> more, Environment environment) {
  environment["SLURM_TIME_FORMAT"] = "%s";
  auto text = large_output(sacct_words(std::move(more)), environment);
  if (text && text->starts_with("JobIDRaw|")) return text;
  if (text)
    return fail(ErrorCode::unavailable,
                fmt::format("sacct prints no table but \"{}\"", trim(std::string_view(*text).substr(0, 80))));
  return text;
}

// scontrol ends with 1 both for a job that it does not know and for one that it does not show, and says which in words.
Result<SlurmAnswer> ask_controller(const std::string& id, const Environment& environment, SlurmAnswer answer) {
  const auto text = run_tool({"/bin/sh", "-c", "scontrol --oneliner show job \"$1\" 2>&1 || [ $? -ne 127 ]", "sh", id},
                             environment, kPatience);
  if (!text && !answer.accounting)
    return fail(ErrorCode::not_found, "there is no Slurm here: neither sacct nor scontrol answers",
                "ask on a login node, or load its module");
  if (!text) return answer;
  if (text->find("ermission denied") != std::string::npos)
    return fail(ErrorCode::permission_denied,
                fmt::format("job {} is not yours and this site shows nobody the jobs of others", id),
                "its owner or an administrator can ask");
  answer.jobs = parse_scontrol_jobs(*text);
  if (!answer.accounting && answer.jobs.empty() && text->find("nvalid job id") == std::string::npos)
    answer.notes.push_back(fmt::format("scontrol says \"{}\"", trim(std::string_view(*text).substr(0, 200))));
  return answer;
}

}  // namespace

Result<SlurmAnswer> ask_job(const std::string& id, const Environment& environment) {
  if (!is_job_id(id))
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no job", id),
                "give its number, as in 12 or 12_3; squeue and sacct list yours");
  SlurmAnswer answer;
  if (auto text = sacct({"--jobs", id}, environment)) {
    answer.accounting = true;
    answer.jobs = parse_sacct(*text);
  } else {
    answer.notes.push_back(
        fmt::format("no accounting: {}; Slurm's energy and the steps are not known", text.error().message));
  }
  if (!answer.jobs.empty()) return answer;
  return ask_controller(id, environment, std::move(answer));
}

std::map<std::string, double> ask_node_cpus(const std::string& nodes, const Environment& environment) {
  if (nodes.empty()) return {};
  const auto text = run_tool({"scontrol", "--oneliner", "show", "node", nodes}, environment, kPatience);
  return text ? parse_node_cpus(*text) : std::map<std::string, double>{};
}

Result<SlurmAnswer> ask_jobs(const JobFilter& filter, const Environment& environment) {
  std::vector<std::string> words{"--allocations", "--starttime", filter.begin, "--endtime", filter.end};
  if (!filter.user.empty()) words.insert(words.end(), {"--user", filter.user});
  if (!filter.account.empty()) words.insert(words.end(), {"--accounts", filter.account});
  if (filter.user.empty() && !filter.account.empty()) words.emplace_back("--allusers");
  auto text = sacct(std::move(words), environment);
  if (!text)
    return fail(text.error().code, "Slurm's accounting does not answer: " + text.error().message,
                "a summary needs slurmdbd; ergometer job JOBID works without");
  return SlurmAnswer{parse_sacct(*text), true, {}};
}

}  // namespace ergometer
