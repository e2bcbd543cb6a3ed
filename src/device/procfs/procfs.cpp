#include "device/procfs/procfs.hpp"

namespace ergometer {

void discover_procfs(const Host&, const DiscoverOptions&, Discovery&) {}

}  // namespace ergometer
