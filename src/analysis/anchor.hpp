// Anchoring: a counter that is read seldom fixes the sum between two of its readings, a power channel of the same
// domain tells how that sum is spread over the time between. Used by judge() in domain.cpp; docs/method.md, section 5.
#pragma once

#include "analysis/candidate.hpp"
#include "analysis/rows.hpp"

namespace ergometer {

// Whether `gauge` can tell the shape between the readings of `counter`: both without a hole, the gauge at least four
// times as dense.
[[nodiscard]] bool can_anchor(const Candidate& counter, const Candidate& gauge);

// Recomputes the counter's shares of all lines whose edges lie between its readings. O(readings of the gauge in the
// stretches that edges cut).
void anchor(Candidate& counter, const Candidate& gauge, const Rows& rows);

// How far the gauge's energy is from the counter's between readings of the counter, as a share, 95 %: 0 while the
// gauge's own variance explains it. A gauge that looks always at the same moments of a load is steady and yet wrong.
[[nodiscard]] double contradiction(const Candidate& counter, const Candidate& gauge);

}  // namespace ergometer
