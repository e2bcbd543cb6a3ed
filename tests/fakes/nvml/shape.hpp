// A quantity over time with a closed-form integral, so that the fake's energy counter is exact. Part of the fake NVML.
#pragma once

#include <string_view>
#include <vector>

namespace fake_nvml {

// constant V | square HIGH LOW ON_S OFF_S | ramp FROM TO SECONDS | steps V0 V1 V2 ... (one a second, the last holds;
// "-" is no value). A bare number is a constant. Before time 0 a square continues, the others keep their first value.
class Shape {
 public:
  Shape() = default;
  // False for text of another form; `*this` is then unchanged.
  bool parse(std::string_view text);
  [[nodiscard]] double at(double t) const;        // NaN: no value
  [[nodiscard]] double integral(double t) const;  // from 0 to t
  [[nodiscard]] double mean(double from, double to) const;

 private:
  enum class Kind { constant, square, ramp, steps };
  Kind kind_ = Kind::constant;
  std::vector<double> numbers_{0.0};
};

}  // namespace fake_nvml
