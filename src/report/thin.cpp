#include "report/thin.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace ergometer {
namespace {

// The lowest and highest reading of the bucket that is being filled, by index.
struct Bucket {
  std::size_t lowest = 0, highest = 0;
  bool used = false;
};

class Thinner {
 public:
  Thinner(std::span<const std::int64_t> t, std::span<const double> v, std::size_t buckets) : t_(t), v_(v) {
    out_.t_ns.reserve(2 * buckets + 2);
    out_.values.reserve(2 * buckets + 2);
  }
  void consider(std::size_t i) {
    if (!bucket_.used) bucket_ = {i, i, true};
    if (v_[i] < v_[bucket_.lowest]) bucket_.lowest = i;
    if (v_[i] > v_[bucket_.highest]) bucket_.highest = i;
  }
  // Writes the bucket's two readings in order of time.
  void close() {
    if (!bucket_.used) return;
    const auto [first, second] = std::minmax(bucket_.lowest, bucket_.highest);
    keep(first);
    keep(second);
    bucket_.used = false;
  }
  void keep(std::size_t i) {
    if (last_ && *last_ >= i) return;
    out_.t_ns.push_back(t_[i]);
    out_.values.emplace_back(v_[i]);
    last_ = i;
  }
  // Between readings i - 1 and i.
  void gap(std::size_t i) {
    out_.t_ns.push_back(t_[i - 1] + (t_[i] - t_[i - 1]) / 2);
    out_.values.emplace_back();
  }
  ThinSeries take() { return std::move(out_); }

 private:
  std::span<const std::int64_t> t_;
  std::span<const double> v_;
  Bucket bucket_;
  std::optional<std::size_t> last_;
  ThinSeries out_;
};

// The distance above which a gap is shown: gap_ns, or more where there are too many gaps.
std::int64_t shown_gap(std::span<const std::int64_t> t, std::int64_t gap_ns, std::size_t most) {
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < t.size(); ++i)
    if (t[i] - t[i - 1] > gap_ns) gaps.push_back(t[i] - t[i - 1]);
  if (gaps.size() <= most) return gap_ns;
  const auto nth = gaps.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(gaps.begin(), nth, gaps.end(), std::greater<>());
  return *nth;
}

}  // namespace

ThinSeries thin(std::span<const std::int64_t> t, std::span<const double> v, std::int64_t gap_ns, std::size_t buckets) {
  if (t.empty() || buckets == 0) return {};
  Thinner out(t, v, buckets);
  const std::int64_t gap = shown_gap(t, gap_ns, buckets);
  const double width = static_cast<double>(t.back() - t.front()) / static_cast<double>(buckets);
  std::int64_t bucket_end = t.front();  // the first reading opens the first bucket
  out.keep(0);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const bool after_gap = i > 0 && t[i] - t[i - 1] > gap;
    if (after_gap) {
      out.close();
      out.keep(i - 1);
      out.gap(i);
      out.keep(i);
    }
    if (t[i] >= bucket_end) {
      out.close();
      const double number = width > 0 ? std::floor(static_cast<double>(t[i] - t.front()) / width) : 0;
      bucket_end = t.front() + static_cast<std::int64_t>(std::ceil((number + 1) * width));
    }
    out.consider(i);
  }
  out.close();
  out.keep(t.size() - 1);
  return out.take();
}

TimeSpread spread_of_time(std::span<const std::int64_t> t, std::span<const double> v, std::int64_t gap_ns,
                          std::int64_t usual_ns, double low, double high, std::size_t bins) {
  TimeSpread out{low, high, {}};
  if (t.empty() || bins == 0 || !(high > low)) return out;
  out.share.assign(bins, 0);
  double total = 0;
  const double scale = static_cast<double>(bins) / (high - low);
  for (std::size_t i = 0; i < t.size(); ++i) {
    // A reading stands for the time up to the next one; before a gap and at the end for the usual distance.
    const std::int64_t to_next = i + 1 < t.size() ? t[i + 1] - t[i] : gap_ns + 1;
    const auto weight = static_cast<double>(std::max<std::int64_t>(1, to_next > gap_ns ? usual_ns : to_next));
    const double bin = std::clamp((v[i] - low) * scale, 0.0, static_cast<double>(bins) - 0.5);
    out.share[static_cast<std::size_t>(bin)] += weight;
    total += weight;
  }
  for (auto& share : out.share) share /= total;
  return out;
}

std::optional<double> mean_over_time(std::span<const std::int64_t> t, std::span<const double> v, std::int64_t gap_ns) {
  if (t.empty()) return std::nullopt;
  double area = 0, time = 0;
  for (std::size_t i = 1; i < t.size(); ++i) {
    const std::int64_t step = t[i] - t[i - 1];
    if (step > gap_ns) continue;
    area += (v[i] + v[i - 1]) / 2 * static_cast<double>(step);
    time += static_cast<double>(step);
  }
  if (time > 0) return area / time;
  double sum = 0;  // single readings, each after a gap
  for (const double value : v) sum += value;
  return sum / static_cast<double>(v.size());
}

PartMeans part_means(std::span<const std::int64_t> t, std::span<const double> v, std::int64_t width_ns) {
  PartMeans out;
  out.width_ns = width_ns;
  if (t.empty() || width_ns <= 0) return out;
  const auto part_of = [&](std::int64_t when) {
    return when >= 0 ? when / width_ns : -((-when + width_ns - 1) / width_ns);
  };
  out.first = part_of(t.front());
  out.values.resize(static_cast<std::size_t>(part_of(t.back()) - out.first) + 1);
  for (std::size_t i = 0; i < t.size();) {
    const std::int64_t part = part_of(t[i]);
    double sum = 0;
    std::size_t count = 0;
    for (; i < t.size() && part_of(t[i]) == part; ++i, ++count) sum += v[i];
    out.values[static_cast<std::size_t>(part - out.first)] = sum / static_cast<double>(count);
  }
  return out;
}

std::int64_t part_width(std::int64_t span_ns, std::size_t parts) {
  const std::int64_t least =
      std::max<std::int64_t>(1, span_ns / static_cast<std::int64_t>(std::max<std::size_t>(1, parts)));
  for (std::int64_t decade = 1;; decade *= 10)
    for (const std::int64_t factor : {1, 2, 5})
      if (factor * decade >= least) return factor * decade;
}

}  // namespace ergometer
