// A run as the text of its page: sees every trace once, while load_run reads it, and keeps what the figures need.
#include <algorithm>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "analysis/counter.hpp"
#include "analysis/curve.hpp"
#include "analysis/series.hpp"
#include "library/load_run.hpp"
#include "report/page_run.hpp"
#include "report_pages.hpp"
#include "store/run_reader.hpp"

namespace ergometer::cli {
namespace {

constexpr std::size_t kPowerBuckets = 5000;  // two readings each: every pixel of a wide screen, four times zoomed
constexpr std::size_t kOtherReadings = 250'000;  // over all other series
constexpr std::size_t kFewestBuckets = 150, kMostBuckets = 1000;
constexpr std::size_t kParts = 300;
constexpr std::int64_t kLaneBars = 1500;      // of one depth, at most

// Growth by second between readings, at the middle of each step; steps of no known growth are left out and so are gaps.
struct Rates {
  std::vector<std::int64_t> t;
  std::vector<double> values;
};

Rates rates_of(const Series& series, const Channel& channel) {
  CounterRules rules{channel.range, channel.max_power_w};
  if (channel.quantity != Quantity::energy) rules = {};
  Rates out;
  for (std::size_t i = 1; i < series.size(); ++i) {
    const std::int64_t elapsed = series.t()[i] - series.t()[i - 1];
    const auto step = counter_step(series.values()[i - 1], series.values()[i], Nanos(elapsed), rules);
    if (!step.delta) continue;
    out.t.push_back(series.t()[i - 1] + elapsed / 2);
    out.values.push_back(*step.delta / seconds(Nanos(elapsed)));
  }
  return out;
}

// Collects what the page shows of each channel.
class SeriesCollector {
 public:
  // The `channels` of the run share the readings that a page can hold.
  SeriesCollector(Nanos span, std::size_t channels)
      : part_width_ns_(part_width(span.count(), kParts)),
        buckets_(std::clamp(kOtherReadings / 2 / std::max<std::size_t>(1, channels), kFewestBuckets, kMostBuckets)) {}

  void add(const std::string& node, const Trace& trace) {
    for (std::size_t c = 0; c < trace.info.channels.size(); ++c) {
      auto series = make(node, trace, c);
      if (!series) continue;
      const std::lock_guard lock(mutex_);
      series_.push_back(std::move(*series));
    }
  }

  // In an order that does not depend on threads.
  std::vector<PageSeries> take() {
    std::sort(series_.begin(), series_.end(), [](const PageSeries& a, const PageSeries& b) {
      return std::tie(a.node, a.sensor, a.channel.column) < std::tie(b.node, b.sensor, b.channel.column);
    });
    return std::move(series_);
  }

 private:
  [[nodiscard]] std::optional<PageSeries> make(const std::string& node, const Trace& trace, std::size_t c) const {
    const Channel& channel = trace.info.channels[c];
    const bool energy = channel.method && (channel.quantity == Quantity::power || channel.quantity == Quantity::energy);
    const bool counter = channel.behaviour == Behaviour::counter;
    if (!energy && !counter && channel.quantity == Quantity::count) return std::nullopt;
    const Series series(trace, c, !energy && channel.quantity == Quantity::temperature);
    if (series.size() == 0) return std::nullopt;
    SeriesInput input{series.t(), series.values(), series.usual_ns(),
                      gap_limit(trace.info, channel, series.usual_ns())};
    Rates rates;
    if (counter) {
      rates = rates_of(series, channel);
      if (rates.t.empty()) return std::nullopt;
      input.t = rates.t;
      input.values = rates.values;
    }
    const auto role = energy ? SeriesRole::power : counter ? SeriesRole::rate : SeriesRole::gauge;
    return make_page_series(node, trace.info.name, channel, role, input,
                            {energy ? kPowerBuckets : buckets_, part_width_ns_});
  }

  std::int64_t part_width_ns_;
  std::size_t buckets_;
  std::mutex mutex_;
  std::vector<PageSeries> series_;
};

// Of several channels that tell a domain's power the one that its energy came from, so that figure and table agree.
void drop_other_methods(const Summary& summary, std::vector<PageSeries>& series) {
  std::unordered_map<std::string, Method> chosen;
  for (const auto& node : summary.nodes)
    for (const auto& domain : node.domains) chosen.emplace(node.name + "\n" + domain.domain, domain.method);
  std::unordered_map<std::string, bool> there;
  const auto key = [](const PageSeries& s) { return s.node + "\n" + s.channel.domain; };
  const auto fits = [&](const PageSeries& s) {
    const auto found = chosen.find(key(s));
    return found != chosen.end() && s.channel.method == found->second;
  };
  for (const auto& s : series)
    if (s.role == SeriesRole::power && fits(s)) there[key(s)] = true;
  std::unordered_map<std::string, bool> taken;
  std::erase_if(series, [&](const PageSeries& s) {
    if (s.role != SeriesRole::power) return false;
    const auto k = key(s);
    if (there.count(k) && !fits(s)) return true;
    return !taken.emplace(k, true).second;
  });
}

// Narrower bars are merged.
std::int64_t least_bar(const std::vector<Region>& regions) {
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (const auto& region : regions) {
    first = std::min(first, to_ns(region.begin));
    last = std::max(last, to_ns(region.end));
  }
  return last > first ? (last - first) / kLaneBars : 0;
}

Nanos span_of(const Manifest& manifest) {
  if (manifest.begin && manifest.end && *manifest.end > *manifest.begin) return *manifest.end - *manifest.begin;
  return std::chrono::minutes(5);  // a run of unknown length: parts of a second
}

}  // namespace

Result<PageText> run_page(const std::filesystem::path& run, const PageFactors& factors) {
  // Opened for the run's length and its number of channels, which the figures share out before any trace is read.
  auto reader = RunReader::open(run);
  if (!reader) return tl::unexpected(reader.error());
  std::size_t channels = 0;
  for (const auto& node : reader->nodes())
    for (const auto& sensor : node.sensors) channels += sensor.channels.size();
  SeriesCollector collector(span_of(reader->manifest()), channels);

  std::vector<PageNode> nodes;
  RunVisitor visitor;
  visitor.node = [&](const Node& node, const std::vector<Region>& regions, const std::vector<Event>& events) {
    nodes.push_back({node, make_lanes(regions, least_bar(regions)), events});
  };
  visitor.trace = [&](const std::string& node, const Trace& trace) { collector.add(node, trace); };
  auto loaded = load_run(run, visitor);
  if (!loaded) return tl::unexpected(loaded.error());
  RunPage page{loaded->manifest, std::move(loaded->summary), std::move(nodes), collector.take(), factors};
  drop_other_methods(page.summary, page.series);
  const std::string title = page.manifest.name.empty() ? "Run" : page.manifest.name;
  return PageText{title + " \xC2\xB7 Ergometer", run_in_a_line(page.manifest, page.summary), run_page_json(page)};
}

}  // namespace ergometer::cli
