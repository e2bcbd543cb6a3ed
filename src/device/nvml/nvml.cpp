#include "device/nvml/nvml.hpp"

namespace ergometer {

void discover_nvml(const Host&, const DiscoverOptions&, Discovery&) {}

}  // namespace ergometer
