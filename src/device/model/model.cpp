#include "device/model/model.hpp"

namespace ergometer {

void discover_model(const Host&, const DiscoverOptions&, Discovery&) {}

}  // namespace ergometer
