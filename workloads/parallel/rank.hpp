// Which of several processes this is, from the launcher's environment, and `--ranks N`, which is a launcher itself.
// Used by the program before anything else.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace ergometer::workload {

struct Rank {
  int rank = 0;  // of all
  int size = 1;
  int local_rank = 0;                 // on this machine: chooses the GPU
  std::string address = "127.0.0.1";  // of rank 0
  int port = 0;                       // of rank 0; 0: alone
  std::string launcher;               // "torchrun", "Open MPI", "Slurm", "PMI", "--ranks"; empty: alone
};

// torchrun's RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT; else Open MPI's, Slurm's (of a step that srun
// started; a batch script itself is alone), PMI's (MPICH, Intel MPI, PALS); else alone. The last three on one machine
// need no address and no port, Slurm on several neither; MASTER_ADDR and MASTER_PORT go before what is derived. An
// error where the variables contradict each other or one is missing.
[[nodiscard]] Result<Rank> rank_from_environment();

// `--ranks N`: starts N processes of this program with the same arguments (less --ranks) on this machine, and waits.
// When one ends badly the others get SIGTERM, and after 5 s SIGKILL; signals to this process are passed on, but for
// those that the terminal gives to all. They end with this process, however it ends. Returns the exit code: of the
// first that failed, 128 + N where signal N ended it, or 0. `notes` gets a line for each rank that ended badly by
// itself. Only rank 0's standard output is the caller's; the others' goes to its standard error. OMP_NUM_THREADS, where
// unset, becomes this process's processors divided by N. To be called before any thread is started.
[[nodiscard]] Result<int> run_ranks(int ranks, const std::vector<std::string>& arguments, std::ostream& notes);

}  // namespace ergometer::workload
