#include "device/replay/replay.hpp"

namespace ergometer {

void discover_replay(const Host&, const DiscoverOptions&, Discovery&) {}

}  // namespace ergometer
