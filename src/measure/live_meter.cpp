#include "measure/live_meter.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

namespace ergometer {
namespace {

using namespace std::chrono_literals;

// One channel that gives power or energy.
struct Source {
  std::size_t column = 0;
  std::size_t domain = 0;  // index into State::domains
  Method method = Method::counter;
  bool energy = false;  // an energy counter, else a power
  std::optional<MonoTime> t;
  double value = 0;  // the last reading
  std::optional<double> power_w;
  double joules = 0;  // since the last restart
};

struct SensorSources {
  Nanos patience{0};
  std::vector<Source> sources;
};

struct Domain {
  std::string name;
  Scope scope = Scope::node;
  bool measured = true;
};

// The order in which a domain's power and energy are taken from its sources.
int rank_of(Method method) {
  switch (method) {
    case Method::samples:
      return 0;
    case Method::average:
      return 1;
    case Method::integral:
      return 2;
    case Method::counter:
      return 3;
    case Method::model:
      return 4;
  }
  return 5;
}

void advance(Source& source, MonoTime t, double value) {
  if (source.t && t > *source.t) {
    const double dt = seconds(t - *source.t);
    // A counter that fell wrapped or was reset: the summary sorts that out, the live line leaves the interval out.
    const double joules = source.energy ? std::max(0.0, value - source.value) : (value + source.value) / 2 * dt;
    source.joules += joules;
    if (source.energy) source.power_w = joules / dt;
  }
  if (!source.energy) source.power_w = value;
  source.t = t;
  source.value = value;
}

bool is_outermost_candidate(Scope scope) {
  switch (scope) {
    case Scope::node:
    case Scope::module:
    case Scope::package:
    case Scope::dram:
    case Scope::gpu:
      return true;
    default:
      return false;
  }
}

}  // namespace

struct LiveMeter::State {
  mutable std::mutex mutex;  // guards the two below
  std::vector<Domain> domains;
  std::vector<SensorSources> sensors;
};

LiveMeter::LiveMeter() : state_(std::make_unique<State>()) {}

void LiveMeter::extend(const Node& node) {
  const auto usable = [&](const Channel& c) {
    if (c.scope != Scope::gpu) return true;
    const auto gpu =
        std::find_if(node.gpus.begin(), node.gpus.end(), [&](const GpuInfo& g) { return g.uuid == c.device; });
    return gpu == node.gpus.end() || gpu->visible;
  };
  const auto counts = [&](const Channel& c) {
    return c.method && c.in_total && is_outermost_candidate(c.scope) && usable(c) &&
           (c.quantity == Quantity::power || c.quantity == Quantity::energy);
  };
  std::lock_guard lock(state_->mutex);
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < state_->domains.size(); ++i) index.emplace(state_->domains[i].name, i);
  for (std::size_t number = state_->sensors.size(); number < node.sensors.size(); ++number) {
    const auto& sensor = node.sensors[number];
    SensorSources entry;
    entry.patience = std::max<Nanos>(2s, 5 * sensor.interval);
    for (std::size_t column = 0; column < sensor.channels.size(); ++column) {
      const Channel& channel = sensor.channels[column];
      if (!counts(channel)) continue;
      const auto [at, added] = index.try_emplace(channel.domain, state_->domains.size());
      if (added) state_->domains.push_back({channel.domain, channel.scope, channel.measured});
      auto& domain = state_->domains[at->second];
      domain.measured = domain.measured || channel.measured;
      Source source;
      source.column = column;
      source.domain = at->second;
      source.method = channel.measured ? *channel.method : Method::model;
      source.energy = channel.quantity == Quantity::energy;
      entry.sources.push_back(source);
    }
    state_->sensors.push_back(std::move(entry));
  }
}

LiveMeter::~LiveMeter() = default;

void LiveMeter::add(std::size_t sensor, std::span<const Row> rows) {
  std::lock_guard lock(state_->mutex);
  SensorSources& entry = state_->sensors[sensor];
  for (auto& source : entry.sources)
    for (const Row& row : rows) {
      const auto& value = row.values[source.column];
      if (value) {
        advance(source, row.t, *value);
      } else if (!source.energy) {
        // Power is not carried across a missing reading; a counter bridges it.
        source.t.reset();
        source.power_w.reset();
      }
    }
}

void LiveMeter::restart() {
  std::lock_guard lock(state_->mutex);
  for (auto& entry : state_->sensors)
    for (auto& source : entry.sources) source.joules = 0;
}

void LiveMeter::fill(LiveView& view, MonoTime now) const {
  struct Best {
    int power_rank = 9, energy_rank = 9;
    std::optional<double> power_w, joules;
  };
  std::lock_guard lock(state_->mutex);
  std::vector<Best> best(state_->domains.size());
  for (const auto& entry : state_->sensors) {
    for (const auto& source : entry.sources) {
      if (!source.t) continue;
      Best& b = best[source.domain];
      const int rank = rank_of(source.method);
      if (source.power_w && now - *source.t <= entry.patience && rank < b.power_rank) {
        b.power_rank = rank;
        b.power_w = source.power_w;
      }
      if (rank < b.energy_rank) {
        b.energy_rank = rank;
        b.joules = source.joules;
      }
    }
  }
  // A node's meter is shown, but the energy so far is the sum of its parts, where it has any.
  const auto measured_part = [](const Domain& d) { return d.measured && d.scope != Scope::node; };
  const bool parts = std::any_of(state_->domains.begin(), state_->domains.end(), measured_part);
  for (std::size_t i = 0; i < best.size(); ++i) {
    const Domain& domain = state_->domains[i];
    view.domains.push_back({domain.name, best[i].power_w, domain.measured});
    if (!domain.measured || !best[i].joules || (parts && domain.scope == Scope::node)) continue;
    view.energy_j = view.energy_j.value_or(0) + *best[i].joules;
  }
}

}  // namespace ergometer
