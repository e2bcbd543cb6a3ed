// ClockMap: from one node's monotonic clock to that of the run's reference node, with the bound of its error. Between
// two measured offsets a straight line; docs/method.md, section 11, says how the error grows. Used by store, which
// moves what it reads of a node to the reference's time, and by analysis for the error that stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/manifest.hpp"

namespace ergometer {

class ClockMap {
 public:
  // The reference itself: nothing moves, nothing errs.
  ClockMap() = default;
  // Offsets in any order. Those that would let the time run backwards or stand still are left out and counted.
  explicit ClockMap(std::vector<ClockOffset> offsets);

  [[nodiscard]] bool same() const { return knots_.empty(); }
  [[nodiscard]] std::size_t rejected() const { return rejected_; }
  // Of the node's own clock, in nanoseconds. O(log offsets).
  [[nodiscard]] std::int64_t to_reference(std::int64_t own_ns) const;
  [[nodiscard]] MonoTime to_reference(MonoTime own) const { return mono_ns(to_reference(to_ns(own))); }
  // All of `own_ns`, in place; ascending times stay ascending.
  void move(std::vector<std::int64_t>& own_ns) const;

  // Bound of the error at a moment of the reference's clock: the true moment lies within.
  [[nodiscard]] std::int64_t error_ns(std::int64_t reference_ns) const;
  // By how much the error can differ between two moments of the reference's clock at most: what an interval's length
  // may be off by.
  [[nodiscard]] std::int64_t stretch_error_ns(std::int64_t from, std::int64_t to) const;

 private:
  struct Knot {
    std::int64_t own, offset, error;
  };
  // Offset and error at a moment of the own clock.
  [[nodiscard]] Knot at(std::int64_t own_ns) const;
  [[nodiscard]] double slope(std::size_t stretch) const;
  [[nodiscard]] double wander(std::size_t stretch) const;

  std::vector<Knot> knots_;
  std::size_t rejected_ = 0;
};

// Offsets of `own` against `reference` by the wall clocks of both: at each of own's pairs, with the error of both
// clocks against UTC. Empty without a pair on either side. Pairs without the kernel's bound are taken to be
// kUnknownWallError off.
[[nodiscard]] std::vector<ClockOffset> offsets_by_wall(const std::vector<ClockPair>& own,
                                                       const std::vector<ClockPair>& reference);
// What a wall clock that nothing is known of is taken to be off, at most. A guess: machines that nobody disciplines are
// set by hand or at the start.
inline constexpr Nanos kUnknownWallError = std::chrono::seconds(10);

}  // namespace ergometer
