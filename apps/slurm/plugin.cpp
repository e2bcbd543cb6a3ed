// ergometer_spank.so: what Slurm calls. srun, sbatch and salloc gain --ergometer; the step daemon starts one sampler a
// node for a step that is to be measured; the prolog and epilog tell ergometerd of a job. Whatever goes wrong here is a
// line in the log: every hook returns success and waits for nothing but the end of its sampler (docs/cluster.md says how
// long).
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>

extern "C" {
#include <slurm/slurm.h>
#include <slurm/spank.h>
}

#include "base/number.hpp"
#include "base/text.hpp"
#include "daemon_note.hpp"
#include "options.hpp"
#include "sampler.hpp"

// NOLINTBEGIN: names that Slurm looks up
extern "C" {
// Without these a constant of C++ would be the file's own.
extern const char plugin_name[], plugin_type[];
extern const unsigned int plugin_version, spank_plugin_version;
SPANK_PLUGIN(ergometer, 1)
}
// NOLINTEND

namespace ergometer::spank {
namespace {

constexpr int kMostLives = 20;  // of a batch script with a run each

// Slurm loads the plugin once a process and calls it from one thread at a time; between calls this is all there is.
struct State {
  SiteOptions site;
  StepOptions step;
  bool asked = false;  // --ergometer was given
  Sampler sampler;
  std::uint32_t tasks_left = 0;
};

State& state() {
  static State all;
  return all;
}

// No exception may reach Slurm, and nothing of ours fails a job.
template <class Work>
int safely(const char* where, Work work) noexcept {
  try {
    work();
  } catch (const std::exception& error) {
    slurm_info("ergometer: %s: %s", where, error.what());
  } catch (...) {
    slurm_info("ergometer: %s failed", where);
  }
  return ESPANK_SUCCESS;
}

std::string text_of(const Error& error) {
  return error.hint.empty() ? error.message : error.message + ": " + error.hint;
}

template <class Number>
std::optional<Number> item(spank_t spank, spank_item_t which) {
  Number value{};
  if (spank_get_item(spank, which, &value) != ESPANK_SUCCESS) return std::nullopt;
  return value;
}

std::vector<std::string> job_environment(spank_t spank) {
  std::vector<std::string> out;
  char** variables = nullptr;
  if (spank_get_item(spank, S_JOB_ENV, &variables) != ESPANK_SUCCESS || !variables) return out;
  for (; *variables; ++variables) out.emplace_back(*variables);
  return out;
}

std::string value_of(const std::vector<std::string>& environment, const std::string& name) {
  for (const auto& line : environment)
    if (line.size() > name.size() && line[name.size()] == '=' && line.starts_with(name))
      return line.substr(name.size() + 1);
  return {};
}

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const auto& line) { return line.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

// Slurm's name of this node. Several slurmd may share a host, so the host's name is the last resort.
std::string node_name(spank_t spank, const std::vector<std::string>& environment) {
  if (const char* name = std::getenv("SLURMD_NODENAME")) return name;
  auto list = value_of(environment, "SLURM_STEP_NODELIST");
  if (list.empty()) list = value_of(environment, "SLURM_JOB_NODELIST");
  const auto number = item<std::uint32_t>(spank, S_JOB_NODEID);
  std::string name;
  if (hostlist_t nodes = number ? slurm_hostlist_create(list.c_str()) : nullptr) {
    for (std::uint32_t i = 0; i <= *number; ++i) {
      char* one = slurm_hostlist_shift(nodes);
      if (one && i == *number) name = one;
      std::free(one);
    }
    slurm_hostlist_destroy(nodes);
  }
  if (!name.empty()) return name;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return std::string(host, std::strcspn(host, "."));
}

// "0", "batch", "interactive"; "" for steps that run nothing of the user's.
std::string step_name(std::uint32_t step) {
  if (step == SLURM_BATCH_SCRIPT) return "batch";
  if (step == SLURM_INTERACTIVE_STEP) return "interactive";
  return step >= SLURM_INTERACTIVE_STEP ? "" : std::to_string(step);
}

// All folders above and with `path`, from the top.
std::vector<std::string> folders_of(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (path[at - 1] != '/') out.push_back(path.substr(0, at));
  if (path.back() != '/') out.push_back(path);
  return out;
}

struct Step {
  std::vector<std::string> environment;
  Place place;
  std::string cluster;
};

Step step_of(spank_t spank, const std::string& name) {
  Step step;
  step.environment = job_environment(spank);
  step.place.home = value_of(step.environment, "HOME");
  step.place.user = value_of(step.environment, "SLURM_JOB_USER");
  if (step.place.user.empty()) step.place.user = value_of(step.environment, "USER");
  step.place.job = std::to_string(item<std::uint32_t>(spank, S_JOB_ID).value_or(0));
  step.place.step = name;
  step.place.node = node_name(spank, step.environment);
  step.cluster = value_of(step.environment, "SLURM_CLUSTER_NAME");
  if (step.cluster.empty()) step.cluster = "cluster";
  // A job that was requeued keeps its number: its second life is another run. srun's steps know of it.
  const auto restarts = parse_uint(value_of(step.environment, "SLURM_RESTART_COUNT")).value_or(0);
  if (restarts > 0) step.place.step += "-restart" + std::to_string(restarts);
  return step;
}

// The folder of a step's run.
Result<std::string> run_of(const State& all, const Place& place) {
  return fill_in(all.step.folder.empty() ? all.site.folder : all.step.folder, place);
}

// Where a step's record may lie. Slurm 22.05 tells nobody but the batch script itself that it runs again, so its place
// is the first that is free.
Result<std::vector<SamplerRun>> runs_of(const State& all, const Step& step, const std::string& index) {
  std::vector<SamplerRun> runs;
  const bool batch = step.place.step == "batch";
  for (int life = 0; life < (batch ? kMostLives : 1); ++life) {
    auto place = step.place;
    if (life > 0) place.step += "-restart" + std::to_string(life);
    const auto run = run_of(all, place);
    if (!run) return tl::unexpected(run.error());
    SamplerRun one;
    one.argv = {all.site.program, "step", "--root-pid", std::to_string(::getpid()), "-o", *run};
    if (!all.step.interval.empty()) one.argv.insert(one.argv.end(), {"--interval", all.step.interval});
    if (!all.step.sensors.empty()) one.argv.insert(one.argv.end(), {"--sensors", all.step.sensors});
    one.manifest = *run + "/run.json";
    if (!index.empty()) one.link = index + "/" + place.step;
    one.link_target = *run;
    one.log = *run + "." + place.node + ".log";
    runs.push_back(std::move(one));
  }
  return runs;
}

Result<SamplerStart> sampler_of(const State& all, spank_t spank, const Step& step, const std::string& run) {
  SamplerStart start;
  start.environment = step.environment;
  std::erase_if(start.environment, [](const auto& line) { return line.starts_with("ERGOMETER_RUN="); });
  set(start.environment, "SLURMD_NODENAME", step.place.node);
  // What srun's tasks find in their environment and the step daemon does not: who the first task here is.
  const auto node = item<std::uint32_t>(spank, S_JOB_NODEID).value_or(0);
  std::uint32_t first = 0;
  if (spank_get_item(spank, S_JOB_LOCAL_TO_GLOBAL_ID, static_cast<std::uint32_t>(0), &first) != ESPANK_SUCCESS)
    first = 0;
  set(start.environment, "SLURM_NODEID", std::to_string(node));
  set(start.environment, "SLURM_PROCID", std::to_string(first));
  set(start.environment, "SLURM_LOCALID", "0");
  // A batch script is no launch of tasks and has no name of its own.
  if (!is_digit(step.place.step.front()))
    set(start.environment, "ERGOMETER_LAUNCH", "slurm-" + step.place.job + "." + step.place.step);
  if (!all.site.host_root.empty()) {
    const auto root = fill_in(all.site.host_root, step.place);
    if (!root) return tl::unexpected(root.error());
    set(start.environment, "ERGOMETER_HOST_ROOT", *root);
  }
  start.folders = folders_of(run.substr(0, run.rfind('/')));
  std::string index;
  if (!step.place.home.empty() && step.place.home.front() == '/') {
    // Where `ergometer job` looks first (docs/cluster.md): a link a step, whose name decides when several nodes make
    // it.
    index = step.place.home + "/.local/share/ergometer/jobs/" + file_name_of(step.cluster) + "/" + step.place.job;
    for (auto& folder : folders_of(index)) start.folders.push_back(std::move(folder));
  }
  auto runs = runs_of(all, step, index);
  if (!runs) return tl::unexpected(runs.error());
  start.runs = std::move(*runs);
  start.uid = item<uid_t>(spank, S_JOB_UID).value_or(::geteuid());
  start.gid = item<gid_t>(spank, S_JOB_GID).value_or(::getegid());
  return start;
}

void begin_step(spank_t spank) {
  auto& all = state();
  if (!(all.asked ? all.step.measure : all.site.by_default)) return;
  const auto name = step_name(item<std::uint32_t>(spank, S_JOB_STEPID).value_or(SLURM_EXTERN_CONT));
  if (name.empty()) return;
  const Step step = step_of(spank, name);
  const auto run = run_of(all, step.place);
  if (!run) return slurm_info("ergometer: step not measured: %s", text_of(run.error()).c_str());
  const auto start = sampler_of(all, spank, step, *run);
  if (!start) return slurm_info("ergometer: step not measured: %s", text_of(start.error()).c_str());
  if (!all.sampler.start(*start)) return slurm_info("ergometer: step not measured: no process for the sampler");
  all.tasks_left = item<std::uint32_t>(spank, S_JOB_LOCAL_TASK_COUNT).value_or(0);
  auto markers = all.sampler.wait_until_ready();
  if (markers.empty()) markers = *run + "/nodes/" + file_name_of(step.place.node);  // it is slow: most likely there
  spank_setenv(spank, "ERGOMETER_RUN", markers.c_str(), 1);
}

void end_step() {
  auto& all = state();
  if (!all.sampler.started()) return;
  const auto trouble = all.sampler.finish();
  if (!trouble.empty()) slurm_info("ergometer: %s", trouble.c_str());
}

void tell_of_task(spank_t spank, bool begins) {
  auto& sampler = state().sampler;
  const auto rank = item<std::uint32_t>(spank, S_TASK_GLOBAL_ID);
  if (!sampler.started() || !rank) return;
  if (begins) {
    if (const auto pid = item<pid_t>(spank, S_TASK_PID))
      sampler.tell("begin " + std::to_string(*rank) + " " + std::to_string(*pid) + "\n");
  } else if (const auto status = item<int>(spank, S_TASK_EXIT_STATUS)) {
    const int code = WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
    sampler.tell("end " + std::to_string(*rank) + " " + std::to_string(code) + "\n");
  }
}

int take_option(int, const char* text, int remote) {
  try {
    auto& all = state();
    all.asked = true;
    const auto read = read_step_options(text ? text : "", all.step);
    if (read) return ESPANK_SUCCESS;
    if (remote) {
      slurm_info("ergometer: %s", text_of(read.error()).c_str());
      return ESPANK_SUCCESS;
    }
    slurm_error("%s", text_of(read.error()).c_str());
    return -1;  // as Slurm does with an option of its own that is wrong: before there is a job
  } catch (...) {
    return ESPANK_SUCCESS;
  }
}

void take_site_options(int count, char** words) {
  const auto read = read_site_options({words, words + count}, state().site);
  if (!read) slurm_info("ergometer: %s", text_of(read.error()).c_str());
}

std::string user_name(uid_t uid) {
  char buffer[4096];
  passwd entry{}, *found = nullptr;
  return ::getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) == 0 && found ? found->pw_name : "";
}

void note_job(spank_t spank, int count, char** words, bool begins) {
  auto& site = state().site;
  take_site_options(count, words);
  const auto job = item<std::uint32_t>(spank, S_JOB_ID);
  const auto uid = item<uid_t>(spank, S_JOB_UID);
  if (!site.tell_daemon || !job || !uid) return;
  const auto number = std::to_string(*job);
  const auto line = begins ? begin_line({number, *uid, user_name(*uid), site.exclusive}) : end_line(number);
  const auto trouble = tell_daemon(site.daemon.empty() ? kDaemonSocket : site.daemon, line);
  if (!trouble.empty()) slurm_info("ergometer: job %s: %s", number.c_str(), trouble.c_str());
}

char option_name[] = "ergometer", option_value[] = "off|dir=,interval=,sensors=",
     option_usage[] =
         "measure the energy of each node (ergometer job JOBID shows it); as in --ergometer=interval=100ms";
spank_option option{option_name, option_value, option_usage, 2, 0, take_option};

}  // namespace
}  // namespace ergometer::spank

// NOLINTBEGIN: names that Slurm looks up
extern "C" {
using namespace ergometer::spank;

int slurm_spank_init(spank_t spank, int count, char** words) {
  return safely("init", [&] {
    const auto context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) return;
    take_site_options(count, words);
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) slurm_info("ergometer: no option --ergometer");
  });
}

int slurm_spank_user_init(spank_t spank, int, char**) {
  return safely("user_init", [&] {
    if (spank_remote(spank) == 1) begin_step(spank);
  });
}

int slurm_spank_task_post_fork(spank_t spank, int, char**) {
  return safely("task_post_fork", [&] { tell_of_task(spank, true); });
}

int slurm_spank_task_exit(spank_t spank, int, char**) {
  return safely("task_exit", [&] {
    tell_of_task(spank, false);
    auto& all = state();
    if (all.tasks_left > 0 && --all.tasks_left == 0) all.sampler.ask_to_end();
  });
}

int slurm_spank_exit(spank_t spank, int, char**) {
  return safely("exit", [&] {
    if (spank_remote(spank) == 1) end_step();
  });
}

int slurm_spank_job_prolog(spank_t spank, int count, char** words) {
  return safely("prolog", [&] { note_job(spank, count, words, true); });
}

int slurm_spank_job_epilog(spank_t spank, int count, char** words) {
  return safely("epilog", [&] { note_job(spank, count, words, false); });
}
}
// NOLINTEND
