#include "study/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/number.hpp"
#include "base/text.hpp"
#include "store/study_table_json.hpp"
#include "study/child.hpp"

namespace ergometer {
namespace {

// Jobs of this user that wait or run, by number.
Result<std::set<std::string>> live_jobs(const EngineWorld& world) {
  // --me is newer than the oldest Slurm that is still in use.
  auto text = output_of({"squeue", "--noheader", "--format=%i", "--states=all"}, world.in_child);
  if (!text) return tl::unexpected(text.error());
  auto ended = output_of({"squeue", "--noheader", "--format=%i",
                          "--states=CD,CA,F,TO,NF,OOM,DL,BF,PR"}, world.in_child);
  if (!ended) return tl::unexpected(ended.error());
  std::set<std::string> jobs;
  for (const auto line : split(*text, '\n'))
    if (!trim(line).empty()) jobs.emplace(trim(line));
  for (const auto line : split(*ended, '\n')) jobs.erase(std::string(trim(line)));
  return jobs;
}

std::string runs_text(const std::vector<std::size_t>& runs) { return fmt::format("{}", fmt::join(runs, ",")); }

// A word for a shell, whatever is in it.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) c == '\'' ? text += "'\\''" : text += c;
  return text + "'";
}

std::vector<std::string> job_words(const StudyFolder& study, const EngineWorld& world, const CellCommand& cell,
                                   const std::vector<std::size_t>& runs) {
  std::vector<std::string> words{"sbatch", "--parsable", "--job-name", fmt::format("study-{}", study.file.name),
                                 "--nodes", fmt::to_string(cell.nodes), "--output",
                                 (study.path / fmt::format("job-{}.log", runs.front())).string()};
  if (!cell.constraint.empty()) words.insert(words.end(), {"--constraint", cell.constraint});
  words.insert(words.end(), study.file.where.options.begin(), study.file.where.options.end());
  std::string line = "exec";
  for (const auto& word : world.tool) line += " " + quoted(word);
  line += fmt::format(" study job {} --runs {}", quoted(study.path.string()), runs_text(runs));
  if (!world.guard.site_command.empty()) line += " --control-command " + quoted(world.guard.site_command);
  words.insert(words.end(), {"--wrap", line});
  return words;
}

}  // namespace

Result<EngineResult> submit_study(const StudyFolder& study, const EngineWorld& world, bool again) {
  auto state = read_study_state(study.path, study.plan);
  if (!state) return tl::unexpected(state.error());
  auto journal = StudyJournal::open(study.path, "journal.jsonl");
  if (!journal) return tl::unexpected(journal.error());
  const auto jobs = live_jobs(world);
  if (!jobs) return tl::unexpected(jobs.error());
  // Runs that belong into one job, in the order of the plan.
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < study.plan.runs.size(); ++i) {
    const auto& run = state->runs[i];
    const bool done = run.end && (run.end->verdict == Verdict::valid || !again);
    if (done || run.skipped || (!run.job.empty() && jobs->contains(run.job))) continue;
    const auto& planned = study.plan.runs[i];
    const auto cell = command_of(study.file, study.plan.cells[planned.cell].levels);
    if (!cell) return tl::unexpected(cell.error());
    // One job has one kind of nodes.
    const auto kind = fmt::format("{} {}", cell->nodes, cell->constraint);
    if (study.file.where.job_per_block)
      groups[{planned.repetition, kind}].push_back(i);
    else
      groups[{static_cast<int>(planned.cell), kind}].push_back(i);
  }
  for (const auto& [key, runs] : groups) {
    const auto cell = command_of(study.file, study.plan.cells[study.plan.runs[runs.front()].cell].levels);
    auto answer = output_of(job_words(study, world, *cell, runs), world.in_child);
    if (!answer) return tl::unexpected(answer.error());
    const auto number = trim(std::string_view(*answer).substr(0, answer->find(';')));
    if (auto noted = journal->submitted(runs, std::string(number)); !noted) return tl::unexpected(noted.error());
  }
  return EngineResult{};
}

Result<EngineTask> job_task(const std::string& runs, const Environment& environment) {
  EngineTask task;
  task.in_job = true;
  task.again = true;  // it was asked for these
  for (const auto word : split(runs, ',')) {
    const auto run = parse_uint(word);
    if (!run) return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no list of runs", runs), "it is written by study run");
    task.only.insert(*run);
  }
  const auto job = environment.find("SLURM_JOB_ID");
  task.journal = fmt::format("journal-{}.jsonl", job == environment.end() ? "job" : file_name_of(job->second));
  return task;
}

}  // namespace ergometer
