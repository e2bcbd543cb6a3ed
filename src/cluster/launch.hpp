// Launch: which processes of a parallel program belong together, from the variables that a launcher leaves in their
// environment. Pure; used by `ergometer run` and `ergometer step`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"

namespace ergometer {

struct Launch {
  std::string launcher;  // "torchrun", "openmpi", "slurm", "pmi"; "named" with ERGOMETER_LAUNCH
  // The same for all ranks of one launch and for no other launch on this cluster at the time: "slurm-12.0",
  // "ompi-1328218113". Safe as part of a file name.
  std::string key;
  std::optional<int> rank, local_rank;        // in the launch, on this node
  std::optional<int> world_size, local_size;  // ranks of the launch, of them on this node
  std::optional<int> node_count;
  std::vector<std::string> expected_nodes;  // their names, where the launcher tells; else empty
  // Whether ranks can have peers at all: a launch of one rank is an ordinary run.
  [[nodiscard]] bool has_peers() const { return !world_size || *world_size > 1; }
};

// The innermost launcher's: torchrun or mpirun inside a Slurm step started these processes, not the step. nullopt
// without one. A batch script and salloc's shell are no launch: they are one process. Where ERGOMETER_LAUNCH is set its
// value is the name of the launch (for launchers that leave none, as ssh in a loop), and the rest is taken from the
// other variables; set to nothing it says that this process is on its own.
[[nodiscard]] std::optional<Launch> find_launch(const Environment& environment);

// A parallel launcher gave this process a rank among several, but nothing that all ranks of the launch and no others
// have in common (some PMI launchers): each rank would measure on its own.
[[nodiscard]] bool is_nameless_launch(const Environment& environment);

// Variables that decide which devices a process may use, for the union over the ranks of a node.
[[nodiscard]] Environment device_variables(const Environment& environment);

}  // namespace ergometer
