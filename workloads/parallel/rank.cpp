#include "parallel/rank.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/text.hpp"
#include "parallel/host_list.hpp"

namespace ergometer::workload {
namespace {

// Ports that are derived from a job's identity lie below those that Linux gives to outgoing connections (32768 on).
constexpr std::uint64_t kFirstPort = 20000;
constexpr std::uint64_t kPorts = 10000;

// Slurm's numbers for what srun did not start: the batch script, and the shell of an interactive allocation (slurm.h).
constexpr std::int64_t kSlurmBatchScript = 0xfffffffb;
constexpr std::int64_t kSlurmInteractive = 0xfffffffa;

std::string value(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

bool set(const char* name) { return !value(name).empty(); }

Error wrong(std::string message, std::string hint) { return {Fault::usage, std::move(message), std::move(hint)}; }

// A whole number from 0 on out of a variable that must be there.
Result<int> number(const char* name, const char* launcher) {
  const std::string text = value(name);
  if (text.empty()) {
    return wrong(fmt::format("{} is not set, though {} started this process", name, launcher),
                 fmt::format("set {}, or unset the launcher's variables to run alone", name));
  }
  const auto parsed = parse_integer(text);
  if (!parsed || *parsed < 0 || *parsed > 1'000'000) {
    return wrong(fmt::format("{}='{}' is not a whole number from 0 on", name, text),
                 fmt::format("set {} as {} does", name, launcher));
  }
  return static_cast<int>(*parsed);
}

// The first of these variables that is set; the first of all if none is.
const char* first_set(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (set(name)) return name;
  }
  return *names.begin();
}

// FNV-1a: the same on every rank, and spread over the ports.
int port_of(std::string_view job) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return static_cast<int>(kFirstPort + hash % kPorts);
}

Result<Rank> checked(Rank rank) {
  if (rank.size < 1 || rank.rank >= rank.size || rank.local_rank >= rank.size) {
    return wrong(fmt::format("{}'s variables contradict each other: rank {} (local rank {}) of {}", rank.launcher,
                             rank.rank, rank.local_rank, rank.size),
                 "ranks count from 0; check what overrides the launcher's variables");
  }
  if (set("WORLD_SIZE") && rank.launcher != "torchrun" && value("WORLD_SIZE") != std::to_string(rank.size)) {
    return wrong(fmt::format("WORLD_SIZE={} contradicts {}, which started {} processes", value("WORLD_SIZE"),
                             rank.launcher, rank.size),
                 "unset WORLD_SIZE, or start as many processes as it says");
  }
  return rank;
}

Result<Rank> numbered(const char* launcher, const char* rank_name, const char* size_name, const char* local_name) {
  const auto rank = number(rank_name, launcher);
  if (!rank) return rank.error();
  const auto size = number(size_name, launcher);
  if (!size) return size.error();
  Rank found;
  found.rank = *rank;
  found.size = *size;
  found.launcher = launcher;
  if (*size > 1) {
    const auto local = number(local_name, launcher);
    if (!local) return local.error();
    found.local_rank = *local;
  }
  return checked(std::move(found));
}

// Where rank 0 listens: MASTER_ADDR and MASTER_PORT, else `address` and `port` as derived, which may be unknown.
Result<Rank> with_address(Rank rank, const std::string& address, int port) {
  if (rank.size == 1) return rank;
  rank.address = set("MASTER_ADDR") ? value("MASTER_ADDR") : address;
  if (rank.address.empty()) {
    return wrong(fmt::format("{} started ranks on several machines, and where rank 0 runs is not known", rank.launcher),
                 "set MASTER_ADDR (and MASTER_PORT) for all ranks, as 'mpirun -x MASTER_ADDR=$(hostname) ...' does");
  }
  rank.port = port;
  if (set("MASTER_PORT")) {
    const auto given = number("MASTER_PORT", rank.launcher.c_str());
    if (!given) return given.error();
    rank.port = *given;
  }
  if (rank.port < 1 || rank.port > 65535) {
    return wrong(fmt::format("the port of rank 0, {}, is none", rank.port), "set MASTER_PORT to a number up to 65535");
  }
  return rank;
}

Result<Rank> from_torchrun() {
  const bool own = value("ERGOMETER_LAUNCHER") == "--ranks";
  auto rank = numbered("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK");
  if (!rank) return rank;
  if (own) rank->launcher = "--ranks";
  if (rank->size > 1) {
    for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
      if (!set(name)) {
        return wrong(fmt::format("RANK and WORLD_SIZE={} are set, {} is not", rank->size, name),
                     "start the ranks with torchrun, or set MASTER_ADDR and MASTER_PORT to where rank 0 may listen");
      }
    }
  }
  return with_address(std::move(*rank), {}, 0);
}

// The identity of a job of one machine whose launcher gives no name: its process, which is every rank's parent.
std::string parent_process() { return fmt::format("parent {}", ::getppid()); }

// Ranks of an MPI launcher: only where all are on one machine is the address known, and a port that is free there.
Result<Rank> of_mpi(Result<Rank> rank, const char* local_size_name, const std::string& job) {
  if (!rank || rank->size == 1) return rank;
  const bool one_machine = value(local_size_name) == std::to_string(rank->size);
  const std::string identity = job.empty() && one_machine ? parent_process() : job;
  return with_address(std::move(*rank), one_machine ? "127.0.0.1" : "", identity.empty() ? 0 : port_of(identity));
}

Result<Rank> from_open_mpi() {
  return of_mpi(numbered("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
                "OMPI_COMM_WORLD_LOCAL_SIZE", value(first_set({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})));
}

Result<Rank> from_pmi() {
  return of_mpi(
      numbered("PMI", "PMI_RANK", "PMI_SIZE", first_set({"MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"})),
      first_set({"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}), value(first_set({"PMI_JOBID", "PALS_APID"})));
}

// sbatch sets SLURM_PROCID=0 and SLURM_NTASKS for its script too, which is one process.
bool started_by_srun() {
  const auto step = parse_integer(value("SLURM_STEP_ID"));
  return set("SLURM_PROCID") && step && *step != kSlurmBatchScript && *step != kSlurmInteractive;
}

// MPICH's mpirun starts its helpers with srun, one a machine, and they the ranks: then PMI's numbers are the ranks'
// own.
bool pmi_within_srun() {
  return set("PMI_RANK") && (value("PMI_RANK") != value("SLURM_PROCID") ||
                             value("PMI_SIZE") != value(first_set({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})));
}

Result<Rank> from_slurm() {
  auto rank = numbered("Slurm", "SLURM_PROCID", first_set({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"}),
                       "SLURM_LOCALID");
  if (!rank || rank->size == 1) return rank;
  const bool one_machine = value(first_set({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"})) == "1";
  const std::string hosts = value(first_set({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}));
  const std::string address = one_machine ? "127.0.0.1" : first_host(hosts);
  const std::string job =
      fmt::format("{}.{}", value(first_set({"SLURM_JOB_ID", "SLURM_JOBID"})), value("SLURM_STEP_ID"));
  return with_address(std::move(*rank), address, port_of(job));
}

}  // namespace

Result<Rank> rank_from_environment() {
  if (set("RANK")) return from_torchrun();
  if (set("OMPI_COMM_WORLD_RANK")) return from_open_mpi();
  if (started_by_srun() && !pmi_within_srun()) return from_slurm();
  if (set("PMI_RANK")) return from_pmi();
  if (set("WORLD_SIZE") && value("WORLD_SIZE") != "1") {
    return wrong(fmt::format("WORLD_SIZE={} is set, but nothing says which rank this process is", value("WORLD_SIZE")),
                 "start the ranks with torchrun, mpirun, srun or --ranks, or unset WORLD_SIZE");
  }
  return Rank{};
}

}  // namespace ergometer::workload
