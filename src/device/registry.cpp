#include "device/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/text.hpp"
#include "device/cray/cray.hpp"
#include "device/fake/fake.hpp"
#include "device/hwmon/hwmon.hpp"
#include "device/model/model.hpp"
#include "device/nvml/nvml.hpp"
#include "device/procfs/procfs.hpp"
#include "device/profiles.hpp"
#include "device/rapl/rapl.hpp"
#include "device/replay/replay.hpp"

namespace ergometer {
namespace {

using DiscoverFunction = void (*)(const Host&, const DiscoverOptions&, Discovery&);

struct Backend {
  const char* name;
  DiscoverFunction discover;
  bool quick;  // only kernel files, no driver to load and start
};

// Each looks at another part of the machine, so all can look at once. The model is not here: it fills in for what
// the others did not find, so it comes last.
constexpr std::array kBackends{Backend{"nvml", discover_nvml, false}, Backend{"rapl", discover_rapl, true},
                               Backend{"hwmon", discover_hwmon, true}, Backend{"cray", discover_cray, true},
                               Backend{"procfs", discover_procfs, true}};

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
    if (needs_file != (name.size() < request.size()) || request.ends_with('='))
      return fail(ErrorCode::invalid_argument,
                  needs_file ? fmt::format("\"{}\" needs a file", request) : fmt::format("\"{}\" takes no value", name),
                  needs_file ? fmt::format("write {}=FILE", name) : fmt::format("write {}", name));
  }
  return {};
}

// One backend's search, shared with its thread so that a search which never ends can be left behind.
struct Search {
  std::mutex mutex;
  std::condition_variable done_changed;
  bool done = false;
  Discovery found;
};

void merge(Discovery& into, Discovery&& from) {
  auto append = [](auto& to, auto& items) {
    to.insert(to.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
  };
  append(into.sensors, from.sensors);
  append(into.warnings, from.warnings);
  append(into.node.gpus, from.node.gpus);
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

// What is known of the devices completes what their backends say of themselves. Sensors before `first` are left alone:
// they may be read already.
void add_profiles(const std::vector<Profile>& profiles, std::size_t first, Discovery& found) {
  for (std::size_t i = first; i < found.sensors.size(); ++i)
    apply_profiles(profiles, found.node, found.sensors[i]->info().interface, found.sensors[i]->channels());
}

}  // namespace

std::vector<std::string> known_interfaces() {
  return {"nvml", "rapl", "rapl-perf", "rapl-powercap", "hwmon", "cray", "procfs", "model", "replay", "fake"};
}

struct SensorSearch::State {
  Host host;
  DiscoverOptions options;
  Nanos patience;
  std::chrono::steady_clock::time_point deadline;
  std::vector<std::pair<const Backend*, std::shared_ptr<Search>>> searches;
  std::vector<Profile> profiles;  // the user's, then the built-in ones

  void collect(bool quick, Discovery& all);
  Result<void> open_named(Discovery& all) const;
};

void SensorSearch::State::collect(bool quick, Discovery& all) {
  for (auto& [backend, search] : searches) {
    if (backend->quick != quick) continue;
    std::unique_lock lock(search->mutex);
    if (!search->done_changed.wait_until(lock, deadline, [&s = *search] { return s.done; })) {
      all.node.absences.push_back({backend->name, "all sensors",
                                   fmt::format("no answer within {} s", seconds(patience)),
                                   "the driver hangs: look at the kernel log (dmesg), or leave it out with --sensors"});
      all.warnings.push_back(
          {"sensor-timeout",
           fmt::format("{} did not answer within {} s and is not measured", backend->name, seconds(patience)),
           "look at the kernel log (dmesg)"});
      continue;
    }
    if (!wanted(options, backend->name)) search->found.sensors.clear();
    merge(all, std::move(search->found));
  }
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
  for (const auto& backend : kBackends) {
    // Who the machine is belongs to every run, so procfs is asked even where its sensors are not wanted.
    if (!wanted(options, backend.name) && backend.discover != discover_procfs) continue;
    auto search = std::make_shared<Search>();
    std::thread([search, &function = backend.discover, host, options] {
      Discovery found;
      function(host, options, found);
      std::lock_guard lock(search->mutex);
      search->found = std::move(found);
      search->done = true;
      search->done_changed.notify_all();
    }).detach();
    state->searches.emplace_back(&backend, std::move(search));
  }
  state->options = std::move(options);
  return SensorSearch(std::move(state));
}

Result<Discovery> SensorSearch::quick() {
  Discovery found;
  state_->collect(true, found);
  if (auto opened = state_->open_named(found); !opened) return tl::unexpected(opened.error());
  state_->profiles = load_profiles(user_profile_dir(state_->options.environment), found.warnings);
  const auto& built_in = built_in_profiles();
  state_->profiles.insert(state_->profiles.end(), built_in.begin(), built_in.end());
  add_profiles(state_->profiles, 0, found);
  return found;
}

void SensorSearch::finish(Discovery& found) {
  const std::size_t first = found.sensors.size();
  state_->collect(false, found);
  if (wanted(state_->options, "model")) discover_model(state_->host, state_->options, found);
  add_profiles(state_->profiles, first, found);
}

Result<Discovery> discover(const Host& host, const DiscoverOptions& options, Nanos patience) {
  auto search = SensorSearch::begin(host, options, patience);
  if (!search) return tl::unexpected(search.error());
  auto found = search->quick();
  if (found) search->finish(*found);
  return found;
}

}  // namespace ergometer
