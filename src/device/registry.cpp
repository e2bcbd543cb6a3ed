#include "device/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "device/amdgpu/amdgpu.hpp"
#include "device/amdgpu/control.hpp"
#include "device/cpufreq/control.hpp"
#include "device/cray/cray.hpp"
#include "device/drm_card.hpp"
#include "device/fake/fake.hpp"
#include "device/hwmon/hwmon.hpp"
#include "device/intelgpu/intelgpu.hpp"
#include "device/ipmi/ipmi.hpp"
#include "device/jetson/jetson.hpp"
#include "device/meter/meter.hpp"
#include "device/model/model.hpp"
#include "device/nvml/control.hpp"
#include "device/nvml/nvml.hpp"
#include "device/procfs/components.hpp"
#include "device/procfs/procfs.hpp"
#include "device/profiles.hpp"
#include "device/rapl/control.hpp"
#include "device/rapl/rapl.hpp"
#include "device/redfish/redfish.hpp"
#include "device/remote/remote.hpp"
#include "device/replay/replay.hpp"
#include "device/slurm/slurm.hpp"

namespace ergometer {
namespace {

using DiscoverFunction = void (*)(const Host&, const DiscoverOptions&, Discovery&);

struct Backend {
  const char* name;
  DiscoverFunction discover;
  bool quick;         // only kernel files, no driver to load and start
  bool alone = true;  // on a thread of its own; the others share one, which costs less than their threads would
};

// Each looks at another part of the machine, so all can look at once. The model is not here: it fills in for what
// the others did not find, so it comes last.
constexpr std::array kBackends{Backend{"nvml", discover_nvml, false},
                               Backend{"rapl", discover_rapl, true},
                               Backend{"hwmon", discover_hwmon, true, false},
                               Backend{"cray", discover_cray, true, false},
                               Backend{"amdgpu", discover_amdgpu, true, false},
                               Backend{"intelgpu", discover_intelgpu, true, false},
                               Backend{"jetson", discover_jetson, true, false},
                               Backend{"meter", discover_meter, true, false},
                               Backend{"ipmi", discover_ipmi, false},
                               Backend{"redfish", discover_redfish, false},
                               Backend{"slurm", discover_slurm, false},
                               Backend{"procfs", discover_procfs, true},
                               Backend{"components", discover_components, false}};

// Who the machine is belongs to every run, whichever sensors are wanted.
bool describes_machine(const Backend& backend) {
  return backend.discover == discover_procfs || backend.discover == discover_components;
}

// "rapl-perf" asks for the backend "rapl"; "replay=FILE" for "replay".
std::string backend_of(std::string_view request) {
  const auto name = request.substr(0, request.find('='));
  return std::string(name.substr(0, name.find('-')));
}

bool wanted(const DiscoverOptions& options, std::string_view backend) {
  if (options.only.empty()) return true;
  return std::any_of(options.only.begin(), options.only.end(),
                     [&](const std::string& request) { return backend_of(request) == backend; });
}

Result<void> check_names(const DiscoverOptions& options) {
  const auto known = known_interfaces();
  for (const auto& request : options.only) {
    const std::string name = request.substr(0, request.find('='));
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto nearest = nearest_name(name, known);
      return fail(ErrorCode::invalid_argument, fmt::format("unknown sensor interface \"{}\"", name),
                  nearest.empty() ? fmt::format("known are: {}", fmt::join(known, ", "))
                                  : fmt::format("did you mean \"{}\"? Known are: {}", nearest, fmt::join(known, ", ")));
    }
    const bool needs_file = name == "replay" || name == "fake";
    const bool may_name = name == "ipmi" || name == "redfish" || name == "meter" || name == "meter-command";
    if (may_name && !request.ends_with('=')) continue;
    if (needs_file != (name.size() < request.size()) || request.ends_with('='))
      return fail(ErrorCode::invalid_argument,
                  needs_file ? fmt::format("\"{}\" needs a file", request) : fmt::format("\"{}\" takes no value", name),
                  needs_file ? fmt::format("write {}=FILE", name) : fmt::format("write {}", name));
  }
  return {};
}

// One backend's search. Searches share the board with their threads, so that one which never ends can be left behind.
struct Search {
  const Backend* backend;
  bool done = false;  // guarded by the board, as is `found` until then
  bool taken = false;
  Discovery found;
};
struct Board {
  std::mutex mutex;
  std::condition_variable done_changed;
};

// Searches one after another on a thread of their own, which nobody waits for.
void start_searches(std::vector<std::shared_ptr<Search>> searches, std::shared_ptr<Board> board, const Host& host,
                    const DiscoverOptions& options) {
  std::thread([searches = std::move(searches), board = std::move(board), host, options] {
    for (const auto& search : searches) {
      Discovery found;
      search->backend->discover(host, options, found);
      std::lock_guard lock(board->mutex);
      search->found = std::move(found);
      search->done = true;
      board->done_changed.notify_all();
    }
  }).detach();
}

// Every driver counts its GPUs from 0; on the node they go on where the GPUs found before end.
void number_gpus_on(const Discovery& into, Discovery& from) {
  int first = 0;
  for (const auto& gpu : into.node.gpus) first = std::max(first, gpu.index + 1);
  if (first == 0 || from.node.gpus.empty()) return;
  for (auto& gpu : from.node.gpus) gpu.index += first;
  for (auto& sensor : from.sensors) sensor->shift_gpu_number(first);
}

void merge(Discovery& into, Discovery&& from) {
  number_gpus_on(into, from);
  auto append = [](auto& to, auto& items) {
    to.insert(to.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
  };
  append(into.sensors, from.sensors);
  append(into.warnings, from.warnings);
  append(into.node.gpus, from.node.gpus);
  append(into.node.components, from.node.components);
  append(into.node.absences, from.node.absences);
  into.node.versions.merge(from.node.versions);
  // Only procfs knows the machine itself.
  if (!from.node.hostname.empty()) {
    into.node.name = from.node.name;
    into.node.hostname = from.node.hostname;
    into.node.boot_id = from.node.boot_id;
    into.node.kernel = from.node.kernel;
    into.node.cpu = from.node.cpu;
    into.node.memory_bytes = from.node.memory_bytes;
    into.node.memory_limit_bytes = from.node.memory_limit_bytes;
  }
}

bool tells_power(const Sensor& sensor) {
  return std::ranges::any_of(sensor.info().channels, [](const Channel& c) {
    return c.measured && (c.quantity == Quantity::power || c.quantity == Quantity::energy);
  });
}

}  // namespace

std::vector<std::string> known_interfaces() {
  return {"nvml",     "rapl",   "rapl-perf", "rapl-powercap", "hwmon",     "cray",    "amdgpu",
          "intelgpu", "jetson", "procfs",    "ipmi",          "ipmi-dcmi", "ipmi-nm", "ipmi-xcc",
          "redfish",  "slurm",  "meter",     "meter-command", "model",     "remote",  "replay",  "fake"};
}

std::vector<std::string> known_meter_settings() {
  return {"ipmi.host",        "ipmi.user",       "ipmi.password",   "redfish.host",   "redfish.user",
          "redfish.password", "redfish.chassis", "redfish.ca-file", "redfish.verify", "meter.file",
          "meter.command",    "meter.column",    "meter.unit",      "meter.time"};
}

struct SensorSearch::State {
  Host host;
  DiscoverOptions options;
  Nanos patience;
  std::chrono::steady_clock::time_point deadline;
  std::shared_ptr<Board> board = std::make_shared<Board>();
  std::vector<std::shared_ptr<Search>> searches;
  std::vector<Discovery> held;                   // other drivers' GPUs, which wait for the numbers of NVIDIA's
  std::optional<std::vector<Profile>> profiles;  // the user's, then the built-in ones; read when first needed
  bool model_done = false;
  std::size_t absences_asked = 0;  // how many absences the daemon has been asked about

  [[nodiscard]] bool may_have_nvidia() const;
  void release_held(Discovery& all);
  void add_profiles(std::size_t first, Discovery& all);
  bool take_one(bool quick, bool in_order, Discovery& all);
  bool add_model(Discovery& all);
  void ask_daemon(Discovery& all);
  void give_up(Search& search, Discovery& all) const;
  Result<void> open_named(Discovery& all) const;
};

// NVIDIA's GPUs keep the numbers that their driver gives them, whatever else is in the machine.
bool SensorSearch::State::may_have_nvidia() const {
  return wanted(options, "nvml") &&
         (nvidia_driver_loaded(host.root) || options.nvml_path != DiscoverOptions{}.nvml_path);
}

// What is known of the devices completes what their backends say of themselves. Sensors before `first` are left alone:
// they may be read already. Reading the profiles takes milliseconds, so it is done only where a sensor tells power.
void SensorSearch::State::add_profiles(std::size_t first, Discovery& all) {
  for (std::size_t i = first; i < all.sensors.size(); ++i) {
    Sensor& sensor = *all.sensors[i];
    if (!tells_power(sensor)) continue;
    if (!profiles) {
      profiles = load_profiles(user_profile_dir(options.environment), all.warnings);
      const auto& built_in = built_in_profiles();
      profiles->insert(profiles->end(), built_in.begin(), built_in.end());
    }
    apply_profiles(*profiles, all.node, sensor.info().interface, sensor.channels());
  }
}

void SensorSearch::State::release_held(Discovery& all) {
  for (auto& gpus : held) merge(all, std::move(gpus));
  held.clear();
}

void SensorSearch::State::give_up(Search& search, Discovery& all) const {
  search.taken = true;
  all.node.absences.push_back({search.backend->name, "all sensors",
                               fmt::format("no answer within {} s", seconds(patience)),
                               "the driver hangs: look at the kernel log (dmesg), or leave it out with --sensors"});
  all.warnings.push_back(
      {"sensor-timeout",
       fmt::format("{} did not answer within {} s and is not measured", search.backend->name, seconds(patience)),
       "look at the kernel log (dmesg)"});
}

// Adds the next of the quick or slow searches: in the order of kBackends, or whichever answers first. False when none
// is left.
bool SensorSearch::State::take_one(bool quick, bool in_order, Discovery& all) {
  std::vector<Search*> waiting;
  for (auto& search : searches)
    if (search->backend->quick == quick && !search->taken) waiting.push_back(search.get());
  if (waiting.empty()) return false;
  if (in_order) waiting.erase(waiting.begin() + 1, waiting.end());
  std::unique_lock lock(board->mutex);
  const auto ready = [&] { return std::ranges::find_if(waiting, &Search::done); };
  if (!board->done_changed.wait_until(lock, deadline, [&] { return ready() != waiting.end(); })) {
    for (auto* search : waiting) give_up(*search, all);
    return true;
  }
  Search& search = **ready();
  search.taken = true;
  if (!wanted(options, search.backend->name)) search.found.sensors.clear();
  if (quick && !search.found.node.gpus.empty() && may_have_nvidia()) {
    held.push_back(std::move(search.found));
    return true;
  }
  const std::size_t first = all.sensors.size();
  merge(all, std::move(search.found));
  if (search.backend->discover == discover_nvml) release_held(all);
  if (!quick) add_profiles(first, all);  // those found quickly wait for the processor's name
  return true;
}

Result<void> SensorSearch::State::open_named(Discovery& all) const {
  for (const auto& request : options.only) {
    const auto value = request.substr(std::min(request.find('='), request.size() - 1) + 1);
    Result<void> opened;
    if (request.starts_with("replay=")) opened = discover_replay(host, value, all);
    if (request.starts_with("fake=")) opened = discover_fake(host, value, all);
    if (!opened) return opened;
  }
  return {};
}

SensorSearch::SensorSearch(std::unique_ptr<State> state) : state_(std::move(state)) {}
SensorSearch::SensorSearch(SensorSearch&&) noexcept = default;
SensorSearch& SensorSearch::operator=(SensorSearch&&) noexcept = default;
SensorSearch::~SensorSearch() = default;

Result<SensorSearch> SensorSearch::begin(const Host& host, DiscoverOptions options, Nanos patience) {
  if (auto names = check_names(options); !names) return tl::unexpected(names.error());
  auto state = std::make_unique<State>();
  state->host = host;
  state->patience = patience;
  state->deadline = std::chrono::steady_clock::now() + patience;
  std::vector<std::shared_ptr<Search>> together;
  for (const auto& backend : kBackends) {
    if (!wanted(options, backend.name) && !describes_machine(backend)) continue;
    auto search = std::make_shared<Search>();
    search->backend = &backend;
    if (backend.alone)
      start_searches({search}, state->board, host, options);
    else
      together.push_back(search);
    state->searches.push_back(std::move(search));
  }
  if (!together.empty()) start_searches(std::move(together), state->board, host, options);
  state->options = std::move(options);
  return SensorSearch(std::move(state));
}

Result<Discovery> SensorSearch::quick() {
  Discovery found;
  while (state_->take_one(true, true, found)) {
  }
  if (auto opened = state_->open_named(found); !opened) return tl::unexpected(opened.error());
  if (!std::ranges::count(state_->options.only, "remote")) state_->ask_daemon(found);
  state_->add_profiles(0, found);
  return found;
}

// What the direct backends may not read, the daemon may. After them, since a domain has one source only: after all of
// them where "remote" is asked for by name.
void SensorSearch::State::ask_daemon(Discovery& all) {
  add_remote(host, options, absences_asked, all);
  absences_asked = all.node.absences.size();
}

bool SensorSearch::State::add_model(Discovery& all) {
  if (std::exchange(model_done, true)) return false;
  const std::size_t first = all.sensors.size();
  release_held(all);  // NVIDIA's driver never answered
  ask_daemon(all);
  if (wanted(options, "model")) discover_model(host, options, all);
  add_profiles(first, all);
  return true;
}

bool SensorSearch::next(Discovery& found) { return state_->take_one(false, false, found) || state_->add_model(found); }

void SensorSearch::finish(Discovery& found) {
  while (state_->take_one(false, true, found)) {
  }
  state_->add_model(found);
}

Result<Discovery> discover(const Host& host, const DiscoverOptions& options, Nanos patience) {
  auto search = SensorSearch::begin(host, options, patience);
  if (!search) return tl::unexpected(search.error());
  auto found = search->quick();
  if (found) search->finish(*found);
  return found;
}

ControlDiscovery discover_controls(const Host& host, const DiscoverOptions& options,
                                   const std::vector<std::string>& backends) {
  ControlDiscovery found;
  const auto is_wanted = [&](std::string_view name) {
    return backends.empty() || std::find(backends.begin(), backends.end(), name) != backends.end();
  };
  if (is_wanted("nvml")) find_nvml_controls(host, options.nvml_path, options.environment, found);
  if (is_wanted("amdgpu")) find_amdgpu_controls(host.root, found);
  if (is_wanted("rapl")) find_rapl_controls(host.root, found);
  if (is_wanted("cpufreq")) find_cpufreq_controls(host.root, found);
  return found;
}

}  // namespace ergometer
