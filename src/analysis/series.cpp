#include "analysis/series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ergometer {
namespace {

constexpr std::size_t kFewRows = 8;
constexpr std::size_t kMedianSample = 1001;

bool usable(double v, bool allow_negative) {
  return std::abs(v) <= std::numeric_limits<double>::max() && (allow_negative || v >= 0);
}

// Differences of sane times never overflow.
bool sane(std::int64_t t) { return t > -kFarthestTime && t < kFarthestTime; }

}  // namespace

Series::Series(const Trace& trace, std::size_t index, bool allow_negative) {
  const Column& column = trace.columns[index];
  const auto& v = column.values();
  const auto& t = trace.t_ns;
  bool clean = column.complete() && v.size() == t.size() && (t.empty() || (sane(t.front()) && sane(t.back())));
  for (std::size_t i = 0; clean && i < v.size(); ++i)
    clean = usable(v[i], allow_negative) && (i == 0 || t[i] > t[i - 1]);
  if (clean) {
    t_ = t;
    v_ = v;
    if (trace.read_ns.size() == t.size()) read_ = trace.read_ns;
  } else {
    compact(trace, index, allow_negative);
  }
  find_usual(trace, index);
}

void Series::compact(const Trace& trace, std::size_t index, bool allow_negative) {
  const Column& column = trace.columns[index];
  const std::size_t rows = std::min(column.size(), trace.rows());
  const bool widths = trace.read_ns.size() == trace.rows();
  for (std::size_t i = 0; i < rows; ++i) {
    const auto value = column[i];
    if (!value || !usable(*value, allow_negative) || !sane(trace.t_ns[i])) continue;
    if (!own_t_.empty() && trace.t_ns[i] <= own_t_.back()) continue;
    own_t_.push_back(trace.t_ns[i]);
    own_v_.push_back(*value);
    if (widths) own_read_.push_back(trace.read_ns[i]);
  }
  t_ = own_t_;
  v_ = own_v_;
  read_ = own_read_;
}

void Series::find_usual(const Trace& trace, std::size_t index) {
  const std::int64_t declared =
      std::max(trace.info.channels[index].period.value_or(Nanos{0}).count(),
               trace.info.own_time ? std::int64_t{0} : std::int64_t{trace.info.interval.count()});
  if (t_.size() < 2) {
    usual_ns_ = declared > 0 ? declared : trace.info.interval.count();
    return;
  }
  std::vector<std::int64_t> steps;
  const std::size_t stride = std::max<std::size_t>(1, (t_.size() - 1) / kMedianSample);
  for (std::size_t i = 1; i < t_.size(); i += stride) steps.push_back(t_[i] - t_[i - 1]);
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  usual_ns_ = *middle;
  // A handful of distances may all be holes; then the declared rhythm is the better witness.
  if (t_.size() < kFewRows && declared > 0) usual_ns_ = std::min(usual_ns_, declared);
}

}  // namespace ergometer
