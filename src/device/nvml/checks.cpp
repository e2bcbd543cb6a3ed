#include "device/nvml/checks.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/number.hpp"

namespace ergometer::nvml {
namespace {

bool is_power_of_ten(std::uint64_t n) {
  while (n >= 10 && n % 10 == 0) n /= 10;
  return n == 1;
}

}  // namespace

bool is_blank(std::uint64_t raw) {
  return raw == 0xffffffffU || raw == ~std::uint64_t{0} || (raw >= 2147483632U && raw <= 2147483638U) ||
         (raw >= 9223372036854775792U && raw <= 9223372036854775798U);
}

bool is_blank(double raw) { return raw >= 140737488355328.0 && raw <= 140737488355336.0; }

Cells::Cells(std::vector<std::string> columns)
    : columns_(std::move(columns)), values_(columns_.size()), bursts_(columns_.size()) {}

void Cells::begin() {
  values_.assign(columns_.size(), std::nullopt);
  for (auto& burst : bursts_) burst.now = burst.asked = false;
}

void Cells::put(std::size_t column, std::uint64_t raw, double value, double limit) {
  if (is_blank(raw)) return reject(column, fmt::format("{} means no value", raw));
  put(column, value, limit);
}

void Cells::put(std::size_t column, double value, double limit) {
  if (!std::isfinite(value) || is_blank(value)) return reject(column, "not a number");
  if (value > limit || value < 0)
    return reject(column, fmt::format("{} is outside 0 to {}", format_double(value), format_double(limit)));
  values_[column] = value;
  bursts_[column].asked = true;
}

void Cells::reject(std::size_t column, const std::string& why) {
  auto& burst = bursts_[column];
  ++burst.count;
  burst.now = burst.asked = true;
  burst.why = why;
}

void Cells::finish(Readings& out) {
  for (std::size_t i = 0; i < bursts_.size(); ++i) {
    auto& burst = bursts_[i];
    if (burst.count == 0 || !burst.asked) continue;
    const bool ended = !burst.now;
    if (ended || (burst.count >= 10 && is_power_of_ten(burst.count)))
      out.event("rejected", fmt::format("{}: {} reading{} in a row rejected; the last: {}", columns_[i], burst.count,
                                        burst.count == 1 ? "" : "s", burst.why));
    if (ended) burst.count = 0;
  }
}

}  // namespace ergometer::nvml
