// What a node's part of a run says beyond its measurement: identity of the launch for run.json, place and ranks for
// part.json. Pure; used by `ergometer run` and `ergometer step`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/launch.hpp"
#include "cluster/machine.hpp"
#include "cluster/member.hpp"
#include "model/manifest.hpp"

namespace ergometer {

// `launch` may be null: a run of one process, whose place is told all the same.
[[nodiscard]] Place place_of(const Launch* launch, const Machine& machine, const Whereabouts& here);

// run.json of a run over several machines, from the manifest of the part that begins it.
[[nodiscard]] Manifest run_of(Manifest part, const Launch& launch);

// How the ranks of a node ended, together.
struct RanksTogether {
  std::vector<RankEnd> ranks;            // by rank
  std::vector<std::string> aliases;      // names of the node other than its own, each once
  std::optional<MonoTime> begin, end;    // of the first and the last command that is known
  std::optional<int> exit_code, signal;  // the first that is not 0 by rank, else 0; unset: none was told
};
[[nodiscard]] RanksTogether ranks_together(const std::vector<Member>& members, const std::string& node);

}  // namespace ergometer
