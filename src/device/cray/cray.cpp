#include "device/cray/cray.hpp"

namespace ergometer {

void discover_cray(const Host&, const DiscoverOptions&, Discovery&) {}

}  // namespace ergometer
