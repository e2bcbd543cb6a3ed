// Series: the usable readings of one channel of a Trace, as parallel arrays with strictly ascending times. Refers to
// the trace where it can and copies only what a missing or unusable value forces it to. Used by Curve.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/trace.hpp"

namespace ergometer {

// Times beyond this (127 years) are damage; times inside it can be subtracted without overflow.
inline constexpr std::int64_t kFarthestTime = std::int64_t{4'000'000'000} * 1'000'000'000;

class Series {
 public:
  // Column `index` of `trace`, which must outlive the Series. Left out: missing and non-finite values, rows whose time
  // is not later than the one before (the same sample twice) or centuries away, and negative ones unless
  // `allow_negative`.
  // O(rows), one pass when nothing is left out.
  Series(const Trace& trace, std::size_t index, bool allow_negative);
  Series(const Series&) = delete;
  Series& operator=(const Series&) = delete;

  [[nodiscard]] std::span<const std::int64_t> t() const { return t_; }
  [[nodiscard]] std::span<const double> values() const { return v_; }
  [[nodiscard]] std::size_t size() const { return t_.size(); }
  // Width of reading i in ns; 0 for times that are the device's own.
  [[nodiscard]] std::int64_t read_ns(std::size_t i) const { return read_.empty() ? 0 : read_[i]; }
  // Usual distance of two readings in ns: the median; from what the channel declares where there are too few.
  [[nodiscard]] std::int64_t usual_ns() const { return usual_ns_; }

 private:
  void compact(const Trace& trace, std::size_t index, bool allow_negative);
  void find_usual(const Trace& trace, std::size_t index);
  std::vector<std::int64_t> own_t_, own_read_;
  std::vector<double> own_v_;
  std::span<const std::int64_t> t_, read_;
  std::span<const double> v_;
  std::int64_t usual_ns_ = 0;
};

}  // namespace ergometer
