#include "fakes/nvml/shape.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace fake_nvml {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t i = 0;
  while (i < text.size()) {
    while (i < text.size() && (text[i] == ' ' || text[i] == '\t' || text[i] == ',')) ++i;
    const std::size_t begin = i;
    while (i < text.size() && text[i] != ' ' && text[i] != '\t' && text[i] != ',') ++i;
    if (i > begin) words.push_back(text.substr(begin, i - begin));
  }
  return words;
}

bool number(std::string_view text, double& value) {
  if (text == "-") {
    value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

bool Shape::parse(std::string_view text) {
  auto words = words_of(text);
  if (words.empty()) return false;
  Kind kind = Kind::constant;
  if (words[0] == "square") kind = Kind::square;
  if (words[0] == "ramp") kind = Kind::ramp;
  if (words[0] == "steps") kind = Kind::steps;
  if (kind != Kind::constant || words[0] == "constant") words.erase(words.begin());
  std::vector<double> numbers;
  for (const auto word : words) {
    double value = 0;
    if (!number(word, value)) return false;
    numbers.push_back(value);
  }
  const std::size_t needed = kind == Kind::square ? 4 : kind == Kind::ramp ? 3 : 1;
  if (kind == Kind::steps ? numbers.empty() : numbers.size() != needed) return false;
  if (kind == Kind::square && !(numbers[2] + numbers[3] > 0)) return false;
  if (kind == Kind::ramp && !(numbers[2] > 0)) return false;
  kind_ = kind;
  numbers_ = std::move(numbers);
  return true;
}

double Shape::at(double t) const {
  const auto& n = numbers_;
  switch (kind_) {
    case Kind::constant:
      return n[0];
    case Kind::square: {
      const double period = n[2] + n[3];
      // Times come as sums of decimal fractions: a hair before an edge is the edge.
      const double phase = t - std::floor((t + 1e-9) / period) * period;
      return phase + 1e-9 < n[2] ? n[0] : n[1];
    }
    case Kind::ramp:
      return t <= 0 ? n[0] : t >= n[2] ? n[1] : n[0] + (n[1] - n[0]) * t / n[2];
    case Kind::steps: {
      const double i = std::floor(t + 1e-9);
      return i <= 0 ? n.front() : i >= static_cast<double>(n.size()) ? n.back() : n[static_cast<std::size_t>(i)];
    }
  }
  return 0;
}

double Shape::integral(double t) const {
  const auto& n = numbers_;
  switch (kind_) {
    case Kind::constant:
      return n[0] * t;
    case Kind::square: {
      const double period = n[2] + n[3];
      const double whole = std::floor(t / period);
      const double phase = t - whole * period;
      return whole * (n[0] * n[2] + n[1] * n[3]) + n[0] * std::fmin(phase, n[2]) + n[1] * std::fmax(phase - n[2], 0);
    }
    case Kind::ramp:
      if (t <= 0) return n[0] * t;
      if (t <= n[2]) return n[0] * t + (n[1] - n[0]) * t * t / (2 * n[2]);
      return (n[0] + n[1]) * n[2] / 2 + n[1] * (t - n[2]);
    case Kind::steps: {
      if (t <= 0) return n.front() * t;
      double sum = 0;
      for (std::size_t i = 0; i < n.size(); ++i) {
        const double begin = static_cast<double>(i);
        const bool last = i + 1 == n.size();
        if (t <= begin) break;
        sum += n[i] * (last ? t - begin : std::fmin(t - begin, 1));
      }
      return sum;
    }
  }
  return 0;
}

double Shape::mean(double from, double to) const {
  return to > from ? (integral(to) - integral(from)) / (to - from) : at(to);
}

}  // namespace fake_nvml
