// Joules and Watts as types, so that power and energy cannot be mixed up inside; suffixes (_j, _w) carry the unit
// where numbers leave the program. Time is std::chrono.
#pragma once

#include <chrono>
#include <compare>

namespace ergometer {

using Nanos = std::chrono::nanoseconds;

// Seconds as a double, the form formulas use.
constexpr double seconds(Nanos d) { return std::chrono::duration<double>(d).count(); }
// Nearest nanosecond.
constexpr Nanos from_seconds(double s) { return Nanos(static_cast<std::int64_t>(s * 1e9 + (s < 0 ? -0.5 : 0.5))); }

template <class Tag>
struct Unit {
  double value = 0;
  constexpr Unit() = default;
  constexpr explicit Unit(double v) : value(v) {}
  constexpr auto operator<=>(const Unit&) const = default;
  constexpr Unit& operator+=(Unit o) { value += o.value; return *this; }
  constexpr Unit& operator-=(Unit o) { value -= o.value; return *this; }
  friend constexpr Unit operator+(Unit a, Unit b) { return Unit(a.value + b.value); }
  friend constexpr Unit operator-(Unit a, Unit b) { return Unit(a.value - b.value); }
  friend constexpr Unit operator*(Unit a, double k) { return Unit(a.value * k); }
  friend constexpr Unit operator*(double k, Unit a) { return Unit(a.value * k); }
};

using Joules = Unit<struct JoulesTag>;
using Watts = Unit<struct WattsTag>;

constexpr Joules operator*(Watts p, Nanos d) { return Joules(p.value * seconds(d)); }
// Mean power; the duration must be positive.
constexpr Watts operator/(Joules e, Nanos d) { return Watts(e.value / seconds(d)); }

}  // namespace ergometer
