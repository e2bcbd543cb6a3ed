#include "daemon/metrics.hpp"

#include <fmt/format.h>
#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "daemon/limits.hpp"

namespace ergometer::daemon {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Steady = std::chrono::steady_clock;

constexpr Nanos kLeastAge = std::chrono::seconds(1);

// A counter as Prometheus wants it: it never falls but for a restart of the daemon.
struct Total {
  std::optional<double> last;
  double sum = 0;
  bool fresh = false;  // read for this scrape

  void add(double value, const std::optional<double>& range) {
    if (!last)
      sum = value;
    else if (value >= *last)
      sum += value - *last;
    else
      sum += range ? *range - *last + value : value;  // it has wrapped; without a range it has been reset
    last = value;
    fresh = true;
  }
};

struct Family {
  MetricFamily metric;
  Family(std::string name, std::string help, MetricType type) {
    metric.name = std::move(name);
    metric.help = std::move(help);
    metric.type = type;
  }
  void add(std::vector<ClientMetric::Label> labels, double value) {
    ClientMetric m;
    m.label = std::move(labels);
    (metric.type == MetricType::Counter ? m.counter.value : m.gauge.value) = value;
    metric.metric.push_back(std::move(m));
  }
};

// What one feed has told so far.
struct Followed {
  std::optional<std::uint64_t> cursor;
  std::map<std::size_t, Total> totals;   // by column
  std::map<std::size_t, double> powers;  // newest, by column
  bool up = false;
};

class Collector final : public prometheus::Collectable {
 public:
  Collector(const Server& server, std::string version) : server_(server), version_(std::move(version)) {}

  std::vector<MetricFamily> Collect() const override {
    std::lock_guard lock(mutex_);
    if (!collected_ || Steady::now() - *collected_ >= kLeastAge) {
      refresh();
      collected_ = Steady::now();
    }
    return families();
  }

 private:
  void refresh() const {
    const auto feeds = server_.feeds();
    std::vector<std::uint64_t> cursors, tickets;
    for (const auto& feed : feeds) {
      cursors.push_back(followed_[feed->info().name].cursor.value_or(feed->end()));
      tickets.push_back(feed->ask());
    }
    const auto deadline = Steady::now() + kLongestReading;
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      auto& followed = followed_[feeds[i]->info().name];
      followed.powers.clear();
      for (auto& [column, total] : followed.totals) total.fresh = false;
      followed.up = feeds[i]->wait(tickets[i], std::max<Nanos>(Nanos{0}, deadline - Steady::now())) &&
                    !feeds[i]->failure();
      take(*feeds[i], cursors[i], followed);
    }
  }

  static void take(const Feed& feed, std::uint64_t cursor, Followed& followed) {
    const auto& channels = feed.info().channels;
    for (bool more = true; more;) {
      const auto batch = feed.from(cursor);
      cursor = batch.cursor;
      more = batch.more;
      for (const auto& row : batch.rows)
        for (std::size_t c = 0; c < channels.size(); ++c) {
          if (!row.values[c]) continue;
          if (channels[c].quantity == Quantity::energy && channels[c].behaviour == Behaviour::counter)
            followed.totals[c].add(*row.values[c], channels[c].range);
          if (channels[c].quantity == Quantity::power) followed.powers[c] = *row.values[c];
        }
    }
    followed.cursor = cursor;
  }

  std::vector<MetricFamily> families() const {
    Family energy("ergometer_energy_joules_total", "Energy counted by a sensor, wraps undone.", MetricType::Counter);
    Family power("ergometer_power_watts", "Power told by a sensor at this scrape.", MetricType::Gauge);
    Family up("ergometer_sensor_up", "1 if the sensor could be read at this scrape.", MetricType::Gauge);
    for (const auto& feed : server_.feeds()) {
      const auto found = followed_.find(feed->info().name);
      if (found == followed_.end()) continue;
      const auto labels = [&](std::size_t column) {
        const auto& c = feed->info().channels[column];
        return std::vector<ClientMetric::Label>{{"sensor", feed->info().name},
                                                {"column", c.column},
                                                {"domain", c.domain},
                                                {"scope", to_word(c.scope)},
                                                {"in_total", c.in_total ? "true" : "false"}};
      };
      for (const auto& [column, total] : found->second.totals)
        if (total.fresh) energy.add(labels(column), total.sum);
      for (const auto& [column, watts] : found->second.powers) power.add(labels(column), watts);
      up.add({{"sensor", feed->info().name}}, found->second.up ? 1 : 0);
    }
    Family clients("ergometerd_clients", "Connections to the daemon's socket.", MetricType::Gauge);
    clients.add({}, server_.clients());
    Family info("ergometerd_info", "The daemon's version.", MetricType::Gauge);
    info.add({{"version", version_}}, 1);
    std::vector<MetricFamily> all;
    for (auto* family : {&energy, &power, &up, &clients, &info})
      if (!family->metric.metric.empty()) all.push_back(std::move(family->metric));
    return all;
  }

  const Server& server_;
  const std::string version_;
  mutable std::mutex mutex_;
  mutable std::optional<Steady::time_point> collected_;
  mutable std::map<std::string, Followed> followed_;
};

}  // namespace

struct MetricsEndpoint::State {
  std::shared_ptr<Collector> collector;
  std::unique_ptr<prometheus::Exposer> exposer;
};

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
MetricsEndpoint::~MetricsEndpoint() = default;

Result<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::open(const std::string& address, const Server& server,
                                                               const std::string& version) {
  auto state = std::make_unique<State>();
  state->collector = std::make_shared<Collector>(server, version);
  try {
    state->exposer = std::make_unique<prometheus::Exposer>(address);
    state->exposer->RegisterCollectable(state->collector);
  } catch (const std::exception& problem) {
    return fail(ErrorCode::io, fmt::format("cannot serve metrics at {}: {}", address, problem.what()),
                "choose another address in ergometerd.toml: metrics = \"127.0.0.1:9788\"");
  }
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(state)));
}

int MetricsEndpoint::port() const { return state_->exposer->GetListeningPorts().front(); }

}  // namespace ergometer::daemon
