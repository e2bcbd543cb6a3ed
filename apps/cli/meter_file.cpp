#include "meter_file.hpp"

namespace ergometer::cli {
namespace {

MonoTime to_mono(const Manifest& manifest, WallTime wall) {
  const ClockPair* nearest = &manifest.clocks.front();
  for (const auto& pair : manifest.clocks)
    if (std::chrono::abs(pair.wall - wall) < std::chrono::abs(nearest->wall - wall)) nearest = &pair;
  return nearest->mono + (wall - nearest->wall);
}

}  // namespace

Result<meter::Imported> read_meter_of_run(const std::string& path, const Manifest& manifest, const Context& context) {
  const auto setting = [&](const char* key) {
    const auto it = context.meter_settings.find(key);
    return it == context.meter_settings.end() ? std::string() : it->second;
  };
  return meter::read_meter_file(path, {setting("meter.column"), setting("meter.unit"), setting("meter.time")},
                                [&](WallTime t) { return to_mono(manifest, t); });
}

}  // namespace ergometer::cli
