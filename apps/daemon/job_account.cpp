#include "daemon/job_account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/summarise.hpp"
#include "base/number.hpp"

namespace ergometer::daemon {
namespace {

// Readings kept of a sensor: a week at 10 s. Longer jobs keep every second, fourth, ... reading.
constexpr std::size_t kMostReadings = 1 << 16;

bool tells_energy(const Channel& c) {
  return (c.quantity == Quantity::energy || c.quantity == Quantity::power) && c.method.has_value();
}

std::optional<double> sum(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? *a + *b : a ? a : b;
}

DomainEnergy joined(const DomainEnergy& a, double a_s, const DomainEnergy& b, double b_s) {
  DomainEnergy both = b;
  both.energy_j = sum(a.energy_j, b.energy_j);
  both.uncertainty_j = sum(a.uncertainty_j, b.uncertainty_j);
  both.measured = a.measured && b.measured;
  if (a.max_power_w) both.max_power_w = std::max(*a.max_power_w, b.max_power_w.value_or(*a.max_power_w));
  const double covered_s = a.coverage * a_s + b.coverage * b_s, whole_s = a_s + b_s;
  both.coverage = whole_s > 0 ? covered_s / whole_s : 0;
  both.mean_power_w.reset();
  if (both.energy_j && covered_s > 0) both.mean_power_w = *both.energy_j / covered_s;
  return both;
}

const DomainEnergy* find_domain(const std::vector<DomainEnergy>& all, const DomainEnergy& like) {
  const auto at = std::ranges::find_if(
      all, [&](const DomainEnergy& d) { return d.domain == like.domain && d.scope == like.scope; });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace

std::vector<DomainEnergy> joined(const std::vector<DomainEnergy>& first, double first_s,
                                 const std::vector<DomainEnergy>& second, double second_s) {
  std::vector<DomainEnergy> all;
  const auto unknown = [](const DomainEnergy& like) {
    DomainEnergy d = like;
    d.energy_j.reset();
    d.uncertainty_j.reset();
    d.max_power_w.reset();
    d.coverage = 0;
    return d;
  };
  for (const auto& a : first) {
    const auto* b = find_domain(second, a);
    all.push_back(joined(a, first_s, b ? *b : unknown(a), second_s));
  }
  for (const auto& b : second)
    if (!find_domain(first, b)) all.push_back(joined(unknown(b), first_s, b, second_s));
  return all;
}

JobAccount::Followed& JobAccount::followed(const Feed& feed) {
  const auto known = sensors_.find(feed.info().name);
  if (known != sensors_.end()) return known->second;
  Followed added;
  added.cursor = feed.end();
  added.info = feed.info();
  added.info.interval = interval_;
  added.info.channels.clear();
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < feed.info().channels.size(); ++i) {
    if (!tells_energy(feed.info().channels[i])) continue;
    added.columns.push_back(i);
    added.info.channels.push_back(feed.info().channels[i]);
    columns.push_back(feed.info().channels[i].column);
  }
  for (auto& reading : earlier_[feed.info().name])
    if (reading.columns == columns) push(added, {reading.t, Nanos{0}, std::move(reading.values)});
  earlier_.erase(feed.info().name);
  return sensors_.emplace(feed.info().name, std::move(added)).first->second;
}

void JobAccount::take(const Feed& feed) {
  auto& to = followed(feed);
  for (bool more = true; more;) {
    const auto batch = feed.from(to.cursor);
    to.cursor = batch.cursor;
    more = batch.more;
    for (const auto& row : batch.rows) {
      Row part{row.t, row.read_width, {}};
      for (const auto column : to.columns) part.values.push_back(row.values[column]);
      push(to, std::move(part));
    }
  }
}

void JobAccount::push(Followed& to, Row row) {
  if (to.columns.empty() || (!to.rows.empty() && row.t <= to.rows.back().t)) return;
  if (to.newest_is_extra) to.rows.pop_back();
  to.newest_is_extra = to.taken++ % to.stride != 0;
  to.rows.push_back(std::move(row));
  if (to.rows.size() > kMostReadings) thin(to);
}

void JobAccount::thin(Followed& of) {
  std::vector<Row> kept;
  for (std::size_t i = 0; i < of.rows.size(); i += 2) kept.push_back(std::move(of.rows[i]));
  of.newest_is_extra = false;
  of.rows = std::move(kept);
  of.stride *= 2;
  of.taken = 1;  // the newest is the first of the wider steps
}

void JobAccount::go_on_from(std::vector<LastReading> readings) {
  std::ranges::sort(readings, {}, &LastReading::t);
  for (auto& reading : readings) earlier_[reading.sensor].push_back(std::move(reading));
}

std::vector<LastReading> JobAccount::last_readings() const {
  std::vector<LastReading> last;
  for (const auto& [name, sensor] : sensors_) {
    if (sensor.rows.empty()) continue;
    LastReading reading{name, {}, sensor.rows.back().t, sensor.rows.back().values};
    for (const auto& channel : sensor.info.channels) reading.columns.push_back(channel.column);
    last.push_back(std::move(reading));
  }
  // What has not come back since a restart may still come.
  for (const auto& [name, readings] : earlier_)
    if (!readings.empty()) last.push_back(readings.back());
  return last;
}

std::optional<MonoTime> JobAccount::newest() const {
  std::optional<MonoTime> newest;
  for (const auto& [name, sensor] : sensors_)
    if (!sensor.rows.empty()) newest = std::max(newest.value_or(sensor.rows.back().t), sensor.rows.back().t);
  return newest;
}

Trace JobAccount::trace_of(const Followed& sensor) {
  auto trace = Trace::empty(sensor.info);
  for (const auto& row : sensor.rows) trace.push(row);
  return trace;
}

// The jobs are the regions of a run that lasts as long as all of them together.
std::vector<std::vector<DomainEnergy>> JobAccount::energies(const std::vector<JobSpan>& spans) const {
  std::vector<std::vector<DomainEnergy>> all(spans.size());
  if (spans.empty()) return all;
  Manifest manifest;
  manifest.state = "complete";
  manifest.begin = std::ranges::min(spans, {}, &JobSpan::begin).begin;
  manifest.end = std::ranges::max(spans, {}, &JobSpan::end).end;
  std::vector<Region> regions;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    Region region;
    region.begin = spans[i].begin;
    region.end = spans[i].end;
    region.path = fmt::format("job{}", i);
    regions.push_back(std::move(region));
  }
  Node node = node_;
  node.sensors.clear();
  for (const auto& [name, sensor] : sensors_)
    if (!sensor.columns.empty()) node.sensors.push_back(sensor.info);
  Summariser summariser(manifest);
  summariser.add_node(node, std::move(regions), {});
  for (const auto& [name, sensor] : sensors_)
    if (!sensor.columns.empty()) summariser.add_trace(node.name, trace_of(sensor));
  for (auto& region : summariser.finish().regions)
    if (const auto i = parse_uint(std::string_view(region.path).substr(3)); i && *i < all.size())
      all[*i] = std::move(region.domains);
  return all;
}

void JobAccount::forget() {
  sensors_.clear();
  earlier_.clear();
}

}  // namespace ergometer::daemon
