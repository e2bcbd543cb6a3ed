#include "device/registry.hpp"

namespace ergometer {
std::vector<std::string> known_interfaces() { return {}; }
Result<Discovery> discover(const Host&, const DiscoverOptions&, Nanos) { return Discovery{}; }
}  // namespace ergometer
