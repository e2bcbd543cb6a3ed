#include "analysis/candidate.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <numbers>
#include <string_view>

namespace ergometer {
namespace {

// Standard deviation of a device's times on our clock: the wall clock may be slewed by 500 ppm (adjtimex) over the
// second for which a sample waits to be harvested.
constexpr double kMappingS = 0.25e-3;
constexpr std::size_t kOutlineKnots = 200'000;

// Part of the time that the readings of a gauge look at.
double seen_share(const Channel& channel, const Series& series) {
  const auto usual = static_cast<double>(std::max<std::int64_t>(1, series.usual_ns()));
  const auto period = static_cast<double>(channel.period.value_or(Nanos{0}).count());
  const double distance = std::max(usual, period);
  if (channel.sampled_share && (!channel.window || *channel.sampled_share < 1))
    return std::min(1.0, *channel.sampled_share * (period > 0 ? std::min(1.0, period / usual) : 1.0));
  return channel.window ? std::min(1.0, static_cast<double>(channel.window->count()) / (0.98 * distance)) : 0.0;
}

CurveOptions options_of(const Trace& trace, const Channel& channel, const Series& series, bool uncertain) {
  CurveOptions options;
  options.window_ns = std::max<std::int64_t>(0, channel.window.value_or(Nanos{0}).count());
  options.period_ns = std::max<std::int64_t>(0, channel.period.value_or(Nanos{0}).count());
  options.resolution = channel.resolution.value_or(0.0);
  options.gap_ns = gap_limit(trace.info, channel, series.usual_ns());
  options.uncertain = uncertain;
  if (!uncertain) return options;
  // Only what gives energy is corrected for how the device reads.
  options.delay_ns = std::max<std::int64_t>(0, channel.delay.value_or(Nanos{0}).count());
  options.polled = !trace.info.own_time;
  options.share = seen_share(channel, series);
  // A poll meets the device anywhere in its period.
  const std::int64_t stale = std::min(series.usual_ns(), options.period_ns);
  options.timing_s = options.polled ? static_cast<double>(stale) / 1e9 / std::sqrt(12.0) : kMappingS;
  // The driver's own dense samples follow one another without a hole unless somebody knows better.
  if (channel.method == Method::samples && !channel.window && !channel.sampled_share) {
    options.window_ns = series.usual_ns();
    options.share = 1;
    options.timing_s = static_cast<double>(series.usual_ns()) / 1e9 / std::sqrt(12.0);  // its delay is not known
  }
  return options;
}

Curve curve_of(const Trace& trace, const Channel& channel, const Series& series, bool uncertain) {
  const auto options = options_of(trace, channel, series, uncertain);
  if (channel.behaviour == Behaviour::gauge) return Curve::of_gauge(series, options);
  CounterRules rules{channel.range, channel.max_power_w};
  // The plausibility rules are about joules; a counter of bytes or seconds that falls has been reset.
  if (channel.quantity != Quantity::energy) rules = {};
  return Curve::of_counter(series, rules, options);
}

// What a piece's amount may be off by since its place is known to `shift_ns` only: it is moved as a whole, both ways,
// and its level compared, so that the end of the readings does not count. What its length may be off by adds its own
// level.
double moved_by_clock(const Curve& curve, const Piece& piece, const Share& share) {
  if (share.covered_s <= 0) return 0;
  const double level = share.amount / share.covered_s;
  double most = 0;
  for (const double part : {-1.0, -0.5, 0.5, 1.0}) {
    const auto by = std::llround(part * static_cast<double>(piece.shift_ns));
    std::size_t hint = 0;
    const Share there = curve.between(piece.begin + by, piece.end + by, hint);
    if (there.covered_s > 0) most = std::max(most, std::abs(there.amount / there.covered_s - level));
  }
  return most * share.covered_s + std::abs(level) * static_cast<double>(piece.stretch_ns) / 1e9;
}

// Sums every piece into its line. An open end of the run is where the readings end.
std::vector<Share> share_out(const Curve& curve, const Series& series, const Rows& rows) {
  std::vector<Share> shares(rows.size());
  if (series.size() == 0) return shares;
  std::size_t hint = 0;
  for (const auto& piece : rows.pieces) {
    const auto begin = piece.begin == kUnknownBegin ? series.t().front() : piece.begin;
    const auto end = piece.end == kUnknownEnd ? series.t().back() : piece.end;
    if (end <= begin) continue;
    Share share = curve.between(begin, end, hint);
    if (piece.shift_ns > 0 && curve.options().uncertain) share.clock = moved_by_clock(curve, piece, share);
    shares[piece.row].add(share);
  }
  return shares;
}

// Regions of one name that begin at about the same point between two readings, each time: what the device does not look
// at is then the same part of each of them. The mean of the phases' directions tells.
std::vector<std::string> find_locked(const Series& series, const Rows& rows) {
  constexpr double kTogether = 0.9;  // ten random phases agree so well once in 3000
  constexpr std::size_t kRepetitions = 10;
  struct Phases {
    std::complex<double> sum = 0;
    std::size_t count = 0;
  };
  std::map<std::string, Phases> families;
  const auto t = series.t();
  for (const auto& region : rows.regions) {
    const auto next = std::upper_bound(t.begin(), t.end(), to_ns(region.begin));
    if (next == t.begin() || next == t.end()) continue;
    const auto before = *std::prev(next);
    const double phase = static_cast<double>(to_ns(region.begin) - before) / static_cast<double>(*next - before);
    auto& family = families[region.family()];
    family.sum += std::polar(1.0, 2 * std::numbers::pi * phase);
    ++family.count;
  }
  std::vector<std::string> locked;
  for (const auto& [name, phases] : families)
    if (phases.count >= kRepetitions && std::abs(phases.sum) > kTogether * static_cast<double>(phases.count))
      locked.push_back(name);
  return locked;
}

Outline outline_of(const Curve& curve, const Series& series) {
  Outline outline;
  const std::size_t n = series.size();
  const std::size_t stride = n / kOutlineKnots + 1;
  for (std::size_t i = 0; i < n; i += std::min(stride, std::max<std::size_t>(1, n - 1 - i))) {
    const auto p = curve.at_reading(i);
    outline.t.push_back(series.t()[i]);
    outline.energy_j.push_back(p.amount);
    outline.covered_s.push_back(static_cast<double>(p.covered_ns) / 1e9);
    outline.level_w.push_back(curve.level(i));
    if (i + 1 == n) break;
  }
  return outline;
}

void find_gaps(Candidate& c, const Piece& run) {
  for (const auto& hole : c.holes) {
    const auto begin = std::max(hole.begin_ns, run.begin), end = std::min(hole.end_ns, run.end);
    if (end <= begin) continue;
    ++c.gaps;
    c.longest_gap_ns = std::max(c.longest_gap_ns, end - begin);
  }
}

// The first run of digits: the socket of "package/0" and of "package/0/die/1".
std::string_view first_number(std::string_view domain) {
  const auto begin = domain.find_first_of("0123456789");
  if (begin == std::string_view::npos) return {};
  const auto end = domain.find_first_not_of("0123456789", begin);
  return domain.substr(begin, end == std::string_view::npos ? end : end - begin);
}

// What a tool gets that averages the readings as they come.
std::optional<double> plain_mean(const Series& series, const Piece& run) {
  double sum = 0;
  std::size_t n = 0;
  const auto t = series.t();
  for (auto i = static_cast<std::size_t>(std::lower_bound(t.begin(), t.end(), run.begin) - t.begin());
       i < series.size() && t[i] <= run.end; ++i, ++n)
    sum += series.values()[i];
  return n > 0 ? std::optional(sum / static_cast<double>(n)) : std::nullopt;
}

const Piece& run_piece(const Rows& rows) {
  return *std::find_if(rows.pieces.begin(), rows.pieces.end(), [](const Piece& p) { return p.row == kRunRow; });
}

}  // namespace

void calibrate(const Channel& channel, Share& share) {
  const double gain = channel.gain.value_or(1.0), offset_w = channel.offset_w.value_or(0.0);
  if (gain == 1.0 && offset_w == 0.0) return;
  share.amount = gain * share.amount + offset_w * share.covered_s;
  share.variance *= gain * gain;
  share.bridged *= gain;
  share.clock *= gain;
  if (share.highest) share.highest = gain * *share.highest + offset_w;
}

Share Outline::between(std::int64_t from, std::int64_t to) const {
  Share share;
  if (t.size() < 2) return share;
  from = std::clamp(from, t.front(), t.back());
  to = std::clamp(to, t.front(), t.back());
  if (to <= from) return share;
  const auto at = [&](std::int64_t x, const std::vector<double>& y) {
    const auto next = std::upper_bound(t.begin(), t.end(), x);
    if (next == t.end()) return y.back();
    const auto i = static_cast<std::size_t>(next - t.begin()) - 1;
    return y[i] + (y[i + 1] - y[i]) * static_cast<double>(x - t[i]) / static_cast<double>(t[i + 1] - t[i]);
  };
  share.amount = at(to, energy_j) - at(from, energy_j);
  share.covered_s = at(to, covered_s) - at(from, covered_s);
  return share;
}

bool gives_energy(const Channel& channel) {
  return channel.method && (channel.quantity == Quantity::power || channel.quantity == Quantity::energy);
}

std::vector<std::optional<std::size_t>> find_mirrors(const Trace& trace) {
  const auto& channels = trace.info.channels;
  std::vector<std::optional<std::size_t>> mirrors(channels.size());
  const auto may = [&](std::size_t i) {
    return gives_energy(channels[i]) && channels[i].quantity == Quantity::energy && channels[i].in_total;
  };
  for (std::size_t j = 1; j < channels.size(); ++j) {
    for (std::size_t i = 0; i < j && may(j) && !mirrors[j]; ++i) {
      if (!may(i) || mirrors[i] || channels[i].scope != channels[j].scope || channels[i].domain == channels[j].domain)
        continue;
      const auto socket = first_number(channels[i].domain);
      if (socket.empty() || socket != first_number(channels[j].domain) || trace.rows() < 2) continue;
      if (trace.columns[i].complete() && trace.columns[j].complete() &&
          trace.columns[i].values() == trace.columns[j].values())
        mirrors[j] = i;
    }
  }
  return mirrors;
}

Candidate make_candidate(const Trace& trace, std::size_t column, const Rows& rows) {
  Candidate c;
  c.channel = trace.info.channels[column];
  c.sensor = trace.info.name;
  c.interface = trace.info.interface;
  const bool gauge = c.channel.behaviour == Behaviour::gauge;
  const Series series(trace, column, false);
  const Curve curve = curve_of(trace, c.channel, series, true);
  c.blind_ns = curve.blind_ns();
  c.reading = curve.options();
  c.lag_ns = curve.lag_ns();
  c.resolves_ns = gauge ? std::max(series.usual_ns(), c.channel.window.value_or(Nanos{0}).count()) : curve.period_ns();
  c.shares = share_out(curve, series, rows);
  for (auto& share : c.shares) calibrate(c.channel, share);
  c.holes = curve.holes();
  c.log = curve.log();
  c.readings = series.size();
  if (c.readings == 0) return c;
  if (const auto range = curve.range()) {
    const double gain = c.channel.gain.value_or(1.0), offset_w = c.channel.offset_w.value_or(0.0);
    c.lowest_w = gain * range->first + offset_w;
    c.highest_w = gain * range->second + offset_w;
  }
  c.first_ns = series.t().front();
  c.last_ns = series.t().back();
  c.last_power_w = curve.last_level(run_piece(rows).end);
  if (c.last_power_w) *c.last_power_w = c.channel.gain.value_or(1) * *c.last_power_w + c.channel.offset_w.value_or(0);
  if (gauge && seen_share(c.channel, series) < 1) c.locked = find_locked(series, rows);
  find_gaps(c, run_piece(rows));
  if (gauge) c.plain_mean_w = plain_mean(series, run_piece(rows));
  if (c.channel.measured) c.outline = outline_of(curve, series);
  return c;
}

void add_gauges(const Trace& trace, std::size_t column, const Rows& rows, std::vector<Gauge>& out) {
  const Channel& channel = trace.info.channels[column];
  const Series series(trace, column, channel.quantity == Quantity::temperature);
  const Curve curve = curve_of(trace, channel, series, false);
  const auto shares = share_out(curve, series, rows);
  const std::string prefix = channel.domain.empty() ? trace.info.name : channel.domain;
  const auto fill = [&](std::string key, auto value) {
    Gauge gauge{trace.info.name, std::move(key), std::vector<std::optional<double>>(shares.size())};
    bool any = false;
    for (std::size_t r = 0; r < shares.size(); ++r)
      if (shares[r].covered_s > 0) any |= (gauge.values[r] = value(shares[r])).has_value();
    if (any) out.push_back(std::move(gauge));
  };
  const std::string key = prefix + "/" + channel.column;
  if (channel.behaviour == Behaviour::gauge) {
    // Memory comes and goes at once: what the readings around a short region say is not what the region held.
    const bool abrupt = channel.quantity == Quantity::bytes;
    fill(key, [abrupt](const Share& s) {
      return abrupt && !s.highest ? std::nullopt : std::optional(s.amount / s.covered_s);
    });
    if (abrupt) fill(prefix + "/peak_" + channel.column, [](const Share& s) { return s.highest; });
  } else if (channel.column.ends_with("cpu_s")) {
    const auto stem = channel.column.substr(0, channel.column.size() - 1);
    fill(prefix + "/" + stem + "ratio", [](const Share& s) { return std::optional(s.amount / s.covered_s); });
    fill(key, [](const Share& s) { return std::optional(s.amount); });
  } else {
    fill(key, [](const Share& s) { return std::optional(s.amount); });
  }
}

}  // namespace ergometer
