// A run as the text of its page: sees every trace once, while load_run reads it, and keeps what the figures need.
#include <algorithm>
#include <mutex>
#include <set>
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

constexpr std::size_t kPowerBuckets = 5000;      // two readings each: every pixel of a wide screen, four times zoomed
constexpr std::size_t kOtherReadings = 250'000;  // over all other series
constexpr std::size_t kFewestBuckets = 150, kMostBuckets = 1000;
constexpr std::size_t kParts = 300;
constexpr std::int64_t kLaneBars = 1500;  // of one depth, at most; over all ranks
constexpr std::size_t kLaneTracks = 24;   // over all nodes
constexpr std::size_t kPageNodes = 64;    // whose sensors and events are on the page

struct Rates {
  std::vector<std::int64_t> t;
  std::vector<double> values;
};

// The usual time between two changes of a counter: a poll that is faster than the device sees most readings twice.
std::int64_t usual_change(const Series& series, const Channel& channel) {
  if (channel.period && channel.period->count() > 0) return channel.period->count();
  std::vector<std::int64_t> distances;
  std::size_t last = 0;
  for (std::size_t i = 1; i < series.size(); ++i) {
    if (series.values()[i] == series.values()[last]) continue;
    distances.push_back(series.t()[i] - series.t()[last]);
    last = i;
  }
  if (distances.empty()) return series.usual_ns();
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>((distances.size() - 1) / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

// Growth by second from one change of the counter to the next, at the middle of the two; where it has rested for longer
// than it usually does, it has stopped. Steps of no known growth are left out.
Rates rates_of(const Series& series, const Channel& channel) {
  CounterRules rules{channel.range, channel.max_power_w};
  if (channel.quantity != Quantity::energy) rules = {};
  const std::int64_t rest = std::max(series.usual_ns(), 3 * usual_change(series, channel));
  Rates out;
  std::size_t last = 0;
  for (std::size_t i = 1; i < series.size(); ++i) {
    const std::int64_t elapsed = series.t()[i] - series.t()[last];
    if (series.values()[i] == series.values()[last] && elapsed < rest) continue;
    const auto step = counter_step(series.values()[last], series.values()[i], Nanos(elapsed), rules);
    if (step.delta) {
      out.t.push_back(series.t()[last] + elapsed / 2);
      out.values.push_back(*step.delta / seconds(Nanos(elapsed)));
    }
    last = i;
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
      input.usual_ns = std::max(series.usual_ns(), usual_change(series, channel));
      input.gap_ns = std::max(gap_limit(trace.info, channel, input.usual_ns), input.gap_ns);
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

// Which of several channels that tell a domain's power shows most of its course: dense readings before a counter's
// growth, what the device averages after both, a model last.
int course_rank(const Channel& channel) {
  if (!channel.measured) return 4;
  switch (channel.method.value_or(Method::model)) {
    case Method::samples:
      return 0;
    case Method::integral:
      return 1;
    case Method::counter:
      return 2;
    case Method::average:
      return 3;
    case Method::model:
      return 4;
  }
  return 4;
}

// One line a domain: of its channels the one that shows most.
void choose_power(std::vector<PageSeries>& series) {
  const auto key = [](const PageSeries& s) { return s.node + "\n" + s.channel.domain; };
  std::unordered_map<std::string, const PageSeries*> best;
  for (const auto& s : series) {
    if (s.role != SeriesRole::power) continue;
    auto& chosen = best[key(s)];
    if (!chosen || course_rank(s.channel) < course_rank(chosen->channel)) chosen = &s;
  }
  std::vector<bool> dropped(series.size());
  for (std::size_t i = 0; i < series.size(); ++i)
    dropped[i] = series[i].role == SeriesRole::power && best[key(series[i])] != &series[i];
  std::size_t i = 0;
  std::erase_if(series, [&](const PageSeries&) { return dropped[i++]; });
}

// Narrower bars are merged.
std::int64_t least_bar(const std::vector<Region>& regions, std::int64_t bars) {
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (const auto& region : regions) {
    first = std::min(first, to_ns(region.begin));
    last = std::max(last, to_ns(region.end));
  }
  return last > first ? (last - first) / std::max<std::int64_t>(1, bars) : 0;
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
  const std::size_t total = reader->nodes().size(), shown = std::min(total, kPageNodes);
  for (std::size_t i = 0; i < shown; ++i)
    for (const auto& sensor : reader->nodes()[i].sensors) channels += sensor.channels.size();
  SeriesCollector collector(span_of(reader->manifest()), channels);

  std::vector<PageNode> nodes;
  std::set<std::string> detailed;
  RunVisitor visitor;
  visitor.node = [&](const Node& node, const std::vector<Region>& regions, const std::vector<Event>& events) {
    if (nodes.size() >= shown) return;
    const std::size_t tracks = std::max<std::size_t>(1, kLaneTracks / shown);
    const auto bars = kLaneBars / static_cast<std::int64_t>(std::min(kLaneTracks, shown * tracks));
    const bool last = nodes.size() >= kLaneTracks;
    nodes.push_back({node, make_tracks(regions, least_bar(regions, bars), last ? 0 : tracks), events});
    detailed.insert(node.name);
  };
  visitor.trace = [&](const std::string& node, const Trace& trace) {
    if (detailed.contains(node)) collector.add(node, trace);
  };
  auto loaded = load_run(run, visitor);
  if (!loaded) return tl::unexpected(loaded.error());
  RunPage page{loaded->manifest, std::move(loaded->summary), std::move(nodes), total, collector.take(), factors};
  choose_power(page.series);
  const std::string title = page.manifest.name.empty() ? "Run" : page.manifest.name;
  return PageText{title + " \xC2\xB7 Ergometer", run_in_a_line(page.manifest, page.summary), run_page_json(page)};
}

}  // namespace ergometer::cli
