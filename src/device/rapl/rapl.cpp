#include "device/rapl/rapl.hpp"

namespace ergometer {

void discover_rapl(const Host&, const DiscoverOptions&, Discovery&) {}

}  // namespace ergometer
