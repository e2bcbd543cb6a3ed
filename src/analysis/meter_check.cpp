#include "analysis/meter_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/curve.hpp"

namespace ergometer {
namespace {

constexpr std::int64_t kMinute_ns = 60'000'000'000;
constexpr double kMinute_s = 60;
constexpr double kCoverage = 0.99;
constexpr std::ptrdiff_t kFewestReadings = 57;

// A source as a curve, and what it says of one minute.
class Meter {
 public:
  explicit Meter(const MeterSource& source)
      : name_(source.trace->info.name), series_(*source.trace, source.column, false), curve_(curve_of(source)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool empty() const { return series_.size() < 2; }
  [[nodiscard]] std::int64_t first() const { return series_.t().front(); }
  [[nodiscard]] std::int64_t last() const { return series_.t().back(); }
  [[nodiscard]] double usual_s() const { return static_cast<double>(series_.usual_ns()) / 1e9; }

  // Mean power from `begin` on for a minute; nullopt where the readings do not suffice.
  [[nodiscard]] std::optional<double> minute(std::int64_t begin) const {
    const auto t = series_.t();
    const auto from = std::lower_bound(t.begin(), t.end(), begin);
    const auto to = std::lower_bound(from, t.end(), begin + kMinute_ns);
    if (to - from < kFewestReadings) return std::nullopt;
    std::size_t hint = 0;
    const Share share = curve_.between(begin, begin + kMinute_ns, hint);
    if (share.covered_s < kCoverage * kMinute_s) return std::nullopt;
    return share.amount / share.covered_s;
  }

 private:
  [[nodiscard]] Curve curve_of(const MeterSource& source) const {
    const Channel& channel = source.trace->info.channels[source.column];
    CurveOptions options;
    options.gap_ns = gap_limit(source.trace->info, channel, series_.usual_ns());
    options.uncertain = false;
    if (channel.behaviour == Behaviour::gauge) return Curve::of_gauge(series_, options);
    return Curve::of_counter(series_, {channel.range, channel.max_power_w}, options);
  }

  std::string name_;
  Series series_;
  Curve curve_;
};

std::vector<MeterWindow> minutes_of(const Meter& a, const Meter& b) {
  std::vector<MeterWindow> out;
  const std::int64_t end = std::min(a.last(), b.last());
  for (std::int64_t t = std::max(a.first(), b.first()); t + kMinute_ns <= end + kMinute_ns / 100;) {
    const auto a_w = a.minute(t), b_w = b.minute(t);
    // After a minute that does not count the next one may begin anywhere; a second further is near enough.
    if (a_w && b_w) out.push_back({mono_ns(t), *a_w, *b_w});
    t += a_w && b_w ? kMinute_ns : kMinute_ns / 60;
  }
  return out;
}

// Five of them, the first and the last among them.
std::vector<MeterWindow> spread(const std::vector<MeterWindow>& all) {
  if (all.size() <= kMeterWindows) return all;
  std::vector<MeterWindow> out;
  for (std::size_t i = 0; i < kMeterWindows; ++i) out.push_back(all[i * (all.size() - 1) / (kMeterWindows - 1)]);
  return out;
}

std::string why_too_few(const Meter& a, const Meter& b, std::size_t minutes) {
  const double common_s = static_cast<double>(std::min(a.last(), b.last()) - std::max(a.first(), b.first())) / 1e9;
  auto text = fmt::format("{} of {} disjoint minutes: both sources have readings over {:.0f} s in common", minutes,
                          kMeterWindows, std::max(0.0, common_s));
  for (const auto* m : {&a, &b})
    if (m->usual_s() > 1.05)
      text +=
          fmt::format("; {} is read each {:.3g} s, the rule asks for one reading a second", m->name(), m->usual_s());
  return text;
}

}  // namespace

std::optional<double> olympic_mean(std::vector<double> values) {
  if (values.size() < 3) return std::nullopt;
  std::ranges::sort(values);
  return std::accumulate(values.begin() + 1, values.end() - 1, 0.0) / static_cast<double>(values.size() - 2);
}

bool MeterCheck::agrees() const { return difference && std::abs(*difference) <= kMeterTolerance; }

MeterCheck check_meter(const MeterSource& a, const MeterSource& b) {
  MeterCheck out;
  const Meter meter_a(a), meter_b(b);
  for (const auto* m : {&meter_a, &meter_b})
    if (m->empty()) {
      out.missing = m->name() + " has no readings";
      return out;
    }
  const auto all = minutes_of(meter_a, meter_b);
  out.minutes = all.size();
  out.windows = spread(all);
  if (all.size() < kMeterWindows) {
    out.missing = why_too_few(meter_a, meter_b, all.size());
    return out;
  }
  std::vector<double> a_w, b_w;
  for (const auto& w : out.windows) {
    a_w.push_back(w.a_w);
    b_w.push_back(w.b_w);
  }
  out.a_w = olympic_mean(std::move(a_w));
  out.b_w = olympic_mean(std::move(b_w));
  if (*out.b_w > 0)
    out.difference = (*out.a_w - *out.b_w) / *out.b_w;
  else
    out.missing = meter_b.name() + " shows no power";
  return out;
}

}  // namespace ergometer
