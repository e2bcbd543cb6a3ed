#include "device/hwmon/hwmon.hpp"

namespace ergometer {

void discover_hwmon(const Host&, const DiscoverOptions&, Discovery&) {}

}  // namespace ergometer
