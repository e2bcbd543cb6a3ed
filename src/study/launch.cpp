#include "study/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "study/child.hpp"

namespace ergometer {
namespace {

using Words = std::vector<std::string>;

void add(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

Words measured(const StudyFile& file, const LaunchPlace& place, Words command) {
  Words words = place.tool;
  add(words, {"run", "-o", place.run_folder.string(), "--name", place.name, "--quiet", "--live-fd", fmt::to_string(kLiveFd)});
  add(words, file.runs.measure);
  words.push_back("--");
  add(words, command);
  return words;
}

// The first rank of each node measures it.
Words rank_words(const StudyFile& file, const LaunchPlace& place, const Words& command) {
  Words words = place.tool;
  add(words, {"study", "rank", "-o", place.run_folder.string()});
  for (const auto& word : file.runs.measure) words.push_back("--measure=" + word);
  words.push_back("--");
  add(words, command);
  return words;
}

Words copies(const LaunchPlace& place, int ranks, const Words& command) {
  if (ranks == 1) return command;
  Words words = place.tool;
  add(words, {"study", "ranks", fmt::to_string(ranks), "--"});
  add(words, command);
  return words;
}

}  // namespace

Result<Words> launch_words(const StudyFile& file, const CellCommand& cell, const LaunchPlace& place) {
  const bool by_srun = file.where.kind == ExecutorKind::srun || (place.in_job && cell.nodes > 1);
  if (by_srun) {
    Words words{"srun", "-N", fmt::to_string(cell.nodes), "-n", fmt::to_string(std::max(cell.ranks, cell.nodes))};
    if (file.where.kind == ExecutorKind::srun) add(words, file.where.options);
    add(words, rank_words(file, place, cell.words));
    return words;
  }
  if (file.where.kind == ExecutorKind::mpirun) {
    Words words{"mpirun", "-n", fmt::to_string(cell.ranks)};
    add(words, file.where.options);
    if (cell.nodes > 1) {
      add(words, rank_words(file, place, cell.words));
      return words;
    }
    add(words, cell.words);
    return measured(file, place, std::move(words));
  }
  if (cell.nodes > 1)
    return fail(ErrorCode::invalid_argument, fmt::format("{} nodes cannot be reached from here", cell.nodes),
                "write executor = \"srun\", \"mpirun\" or \"sbatch\" in [where]");
  return measured(file, place, copies(place, cell.ranks_named ? 1 : cell.ranks, cell.words));
}

std::vector<Error> missing_programs(const StudyFile& file, const std::vector<StudyCell>& cells,
                                    const std::function<bool(const std::string&)>& exists) {
  std::vector<Error> missing;
  if (file.where.kind != ExecutorKind::here && !exists(to_word(file.where.kind)))
    missing.push_back({ErrorCode::not_found, fmt::format("there is no {} here", to_word(file.where.kind)),
                       file.where.kind == ExecutorKind::mpirun ? "install it (Debian: openmpi-bin), or write executor = \"here\""
                                                               : "run it on the cluster, or with --executor here"});
  if (file.where.kind == ExecutorKind::sbatch) return missing;  // the nodes have their own programs
  std::set<std::string> seen;
  for (const auto& cell : cells) {
    // A program that no cell decides is looked for once.
    if (!seen.empty() && file.command.front().find('{') == std::string::npos) break;
    const auto command = command_of(file, cell.levels);
    if (!command || command->words.empty() || !seen.insert(command->words.front()).second) continue;
    if (!exists(command->words.front()))
      missing.push_back({ErrorCode::not_found, fmt::format("there is no program {}", command->words.front()),
                         "give its path, or add its folder to PATH"});
  }
  return missing;
}

}  // namespace ergometer
