#include "device/fake/fake.hpp"

namespace ergometer {

void discover_fake(const Host&, const DiscoverOptions&, Discovery&) {}

}  // namespace ergometer
