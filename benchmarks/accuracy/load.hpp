// Load: the true power of a simulated machine over time, piecewise straight, with its exact energy. Used by the
// accuracy program.
#pragma once

#include <random>
#include <vector>

namespace ergometer::accuracy {

using Random = std::mt19937_64;

double uniform(Random& random, double low, double high);
double log_uniform(Random& random, double low, double high);
double normal(Random& random, double sigma);

class Load {
 public:
  // Starts at `begin` seconds; each piece goes straight from one power to another.
  explicit Load(double begin) : t_{begin}, energy_{0} {}
  void add(double seconds, double from_w, double to_w);
  void hold(double seconds, double w) { add(seconds, w, w); }
  [[nodiscard]] double end() const { return t_.back(); }
  // Joules since the beginning; the first and the last power are held outside.
  [[nodiscard]] double energy(double t) const;
  [[nodiscard]] double power(double t) const;

 private:
  [[nodiscard]] std::size_t find(double t) const;
  std::vector<double> t_, energy_, from_, to_;
};

// Stretches of 2 to 15 s of constant power with steps, square waves (period 5 ms to 5 s), ramps and noise, between
// `low` and `high` watts.
Load random_load(Random& random, double begin, double end, double low, double high);
// `high` in pulses of `on` seconds with `off` seconds of `low` between them; `marks` gets their begins.
Load pulses(double begin, double end, double on, double off, double low, double high, std::vector<double>& marks);

}  // namespace ergometer::accuracy
