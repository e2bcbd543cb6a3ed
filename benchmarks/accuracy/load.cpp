#include "accuracy/load.hpp"

#include <algorithm>
#include <cmath>

namespace ergometer::accuracy {

double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
double log_uniform(Random& random, double low, double high) {
  return std::exp(uniform(random, std::log(low), std::log(high)));
}
double normal(Random& random, double sigma) { return std::normal_distribution<double>(0, sigma)(random); }

void Load::add(double seconds, double from_w, double to_w) {
  from_.push_back(from_w);
  to_.push_back(to_w);
  energy_.push_back(energy_.back() + 0.5 * (from_w + to_w) * seconds);
  t_.push_back(t_.back() + seconds);
}

// The piece that holds t, the first or the last outside.
std::size_t Load::find(double t) const {
  const auto next = std::upper_bound(t_.begin(), t_.end(), t) - t_.begin();
  return static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(next - 1, 0, static_cast<std::ptrdiff_t>(from_.size()) - 1));
}

double Load::energy(double t) const {
  if (t < t_.front()) return from_.front() * (t - t_.front());
  if (t > t_.back()) return energy_.back() + to_.back() * (t - t_.back());
  const auto i = find(t);
  return energy_[i] + 0.5 * (from_[i] + power(t)) * (t - t_[i]);
}

double Load::power(double t) const {
  const auto i = find(t);
  const double x = std::clamp((t - t_[i]) / (t_[i + 1] - t_[i]), 0.0, 1.0);
  return from_[i] + (to_[i] - from_[i]) * x;
}

Load random_load(Random& random, double begin, double end, double low, double high) {
  Load load(begin);
  double level = low;
  while (load.end() < end) {
    const double stop = load.end() + uniform(random, 2, 15);
    const double a = uniform(random, low, high), b = uniform(random, low, high);
    switch (std::uniform_int_distribution<int>(0, 3)(random)) {
      case 0: {
        const double usual = log_uniform(random, 0.2, 5);
        while (load.end() < stop) load.hold(usual * uniform(random, 0.3, 1.7), level = uniform(random, low, high));
        break;
      }
      case 1: {
        const double period = log_uniform(random, 0.005, 5), duty = uniform(random, 0.2, 0.8);
        while (load.end() < stop) {
          load.hold(period * duty, a);
          load.hold(period * (1 - duty), level = b);
        }
        break;
      }
      case 2:
        load.add(stop - load.end(), level, a);
        level = a;
        break;
      default: {
        const double usual = log_uniform(random, 0.002, 0.05), width = uniform(random, 0.05, 0.3) * (high - low);
        while (load.end() < stop) load.hold(usual, level = std::clamp(a + normal(random, width), low, high));
      }
    }
  }
  return load;
}

Load pulses(double begin, double end, double on, double off, double low, double high, std::vector<double>& marks) {
  Load load(begin);
  load.hold(1, low);
  while (load.end() < end) {
    marks.push_back(load.end());
    load.hold(on, high);
    load.hold(off, low);
  }
  return load;
}

}  // namespace ergometer::accuracy
