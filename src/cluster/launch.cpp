#include "cluster/launch.hpp"

#include <fmt/format.h>

#include <array>
#include <initializer_list>

#include "base/number.hpp"
#include "base/text.hpp"
#include "cluster/node_list.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kLongestKey = 120;
// Slurm numbers batch scripts, interactive and external steps from here on (slurm.h: SLURM_MAX_NORMAL_STEP_ID).
constexpr std::int64_t kFirstSpecialStep = 0xfffffff0;

std::string text_of(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto found = environment.find(name); found != environment.end() && !found->second.empty())
      return found->second;
  return {};
}

std::optional<int> number_of(const Environment& environment, std::initializer_list<const char*> names) {
  const auto value = parse_int(text_of(environment, names));
  if (!value || *value < 0 || *value > INT32_MAX) return std::nullopt;
  return static_cast<int>(*value);
}

// FNV-1a, so that long names that differ stay different when they are cut.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

std::string key_of(std::string text) {
  const auto safe = file_name_of(text);
  if (safe == text && safe.size() <= kLongestKey) return safe;
  return fmt::format("{}-{:08x}", safe.substr(0, kLongestKey), hash_of(text));
}

void read_torchrun(const Environment& environment, Launch& out) {
  out.launcher = "torchrun";
  auto id = text_of(environment, {"TORCHELASTIC_RUN_ID"});
  // The name that torchrun takes when it is given none; where the ranks meet then tells launches apart.
  if (id == "none") id = text_of(environment, {"MASTER_ADDR"}) + "-" + text_of(environment, {"MASTER_PORT"});
  out.key = key_of("torchrun-" + id);
  out.rank = number_of(environment, {"RANK"});
  out.local_rank = number_of(environment, {"LOCAL_RANK"});
  out.world_size = number_of(environment, {"WORLD_SIZE"});
  out.local_size = number_of(environment, {"LOCAL_WORLD_SIZE"});
  out.node_count = number_of(environment, {"GROUP_WORLD_SIZE"});
}

void read_open_mpi(const Environment& environment, Launch& out) {
  out.launcher = "openmpi";
  out.key = key_of("ompi-" + text_of(environment, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}));
  out.rank = number_of(environment, {"OMPI_COMM_WORLD_RANK"});
  out.local_rank = number_of(environment, {"OMPI_COMM_WORLD_LOCAL_RANK"});
  out.world_size = number_of(environment, {"OMPI_COMM_WORLD_SIZE"});
  out.local_size = number_of(environment, {"OMPI_COMM_WORLD_LOCAL_SIZE"});
  out.node_count = number_of(environment, {"OMPI_MCA_orte_num_nodes"});
}

bool is_slurm_task(const Environment& environment) {
  const auto step = parse_int(text_of(environment, {"SLURM_STEP_ID", "SLURM_STEPID"}));
  return step && *step >= 0 && *step < kFirstSpecialStep && environment.contains("SLURM_PROCID") &&
         environment.contains("SLURM_JOB_ID");
}

void read_slurm(const Environment& environment, Launch& out) {
  out.launcher = "slurm";
  auto key = fmt::format("slurm-{}.{}", text_of(environment, {"SLURM_JOB_ID"}),
                         text_of(environment, {"SLURM_STEP_ID", "SLURM_STEPID"}));
  // A job that was put back into the queue counts its steps from 0 again.
  if (const auto restarts = number_of(environment, {"SLURM_RESTART_COUNT"}); restarts.value_or(0) > 0)
    key += fmt::format("-restart{}", *restarts);
  out.key = key_of(std::move(key));
  out.rank = number_of(environment, {"SLURM_PROCID"});
  out.local_rank = number_of(environment, {"SLURM_LOCALID"});
  out.world_size = number_of(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  out.node_count = number_of(environment, {"SLURM_STEP_NUM_NODES"});
  if (auto nodes = expand_node_list(text_of(environment, {"SLURM_STEP_NODELIST"})))
    out.expected_nodes = std::move(*nodes);
  const auto counts = expand_counts(text_of(environment, {"SLURM_STEP_TASKS_PER_NODE"}));
  const auto node = number_of(environment, {"SLURM_NODEID"});
  if (counts && node && static_cast<std::size_t>(*node) < counts->size())
    out.local_size = (*counts)[static_cast<std::size_t>(*node)];
}

void read_pmi(const Environment& environment, Launch& out) {
  out.launcher = "pmi";
  const auto id = text_of(environment, {"PMI_JOBID", "PMIX_NAMESPACE", "PMI_KVSNAME"});
  out.key = id.empty() ? std::string() : key_of("pmi-" + id);
  out.rank = number_of(environment, {"PMIX_RANK", "PMI_RANK"});
  out.local_rank = number_of(environment, {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"});
  out.world_size = number_of(environment, {"PMI_SIZE"});
  out.local_size = number_of(environment, {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"});
}

Launch read_launcher(const Environment& environment) {
  Launch launch;
  if (!text_of(environment, {"TORCHELASTIC_RUN_ID"}).empty())
    read_torchrun(environment, launch);
  else if (environment.contains("OMPI_COMM_WORLD_RANK"))
    read_open_mpi(environment, launch);
  else if (is_slurm_task(environment))
    read_slurm(environment, launch);
  else if (environment.contains("PMI_RANK") || environment.contains("PMIX_RANK"))
    read_pmi(environment, launch);
  return launch;
}

}  // namespace

std::optional<Launch> find_launch(const Environment& environment) {
  const auto given = environment.find("ERGOMETER_LAUNCH");
  if (given != environment.end() && given->second.empty()) return std::nullopt;
  Launch launch = read_launcher(environment);
  if (const auto name = text_of(environment, {"ERGOMETER_LAUNCH"}); !name.empty()) {
    launch.key = key_of("named-" + name);
    if (launch.launcher.empty()) {
      launch.launcher = "named";
      launch.rank = number_of(environment, {"RANK"});
      launch.local_rank = number_of(environment, {"LOCAL_RANK"});
      launch.world_size = number_of(environment, {"WORLD_SIZE"});
      launch.local_size = number_of(environment, {"LOCAL_WORLD_SIZE"});
    }
  }
  if (launch.key.empty()) return std::nullopt;
  return launch;
}

bool is_nameless_launch(const Environment& environment) {
  const Launch launch = read_launcher(environment);
  return !launch.launcher.empty() && launch.key.empty() && launch.world_size.value_or(1) > 1 &&
         !environment.contains("ERGOMETER_LAUNCH");
}

Environment device_variables(const Environment& environment) {
  Environment out;
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
                           "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
                           "ZE_FLAT_DEVICE_HIERARCHY", "ONEAPI_DEVICE_SELECTOR"})
    if (const auto found = environment.find(name); found != environment.end()) out.insert(*found);
  return out;
}

}  // namespace ergometer
