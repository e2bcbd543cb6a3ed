#include "device/sensor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.hpp"

namespace ergometer {
namespace {

// The number right behind `prefix`, plus `by`.
void shift(std::string& text, std::string_view prefix, int by) {
  if (!text.starts_with(prefix)) return;
  const auto end = std::min(text.find_first_not_of("0123456789", prefix.size()), text.size());
  const auto number = parse_uint(std::string_view(text).substr(prefix.size(), end - prefix.size()));
  if (number) text.replace(prefix.size(), end - prefix.size(), fmt::format("{}", static_cast<int>(*number) + by));
}

}  // namespace

void Sensor::shift_gpu_number(int by) {
  shift(info_.name, "gpu", by);
  for (auto& channel : info_.channels) shift(channel.domain, "gpu/", by);
}

}  // namespace ergometer
