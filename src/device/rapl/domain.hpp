// RaplDomain: which part of the processor a RAPL counter is about, and the channel that follows. Shared by the two
// interfaces, so that the same part has the same name through either.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/channel.hpp"

namespace ergometer::rapl {

enum class Kind { package, core, uncore, dram, psys, unknown };

struct Domain {
  Kind kind = Kind::unknown;
  int package = 0;
  std::optional<int> die;  // only where a package has several
  std::string other;       // the name as the kernel says it, for Kind::unknown
  bool operator==(const Domain&) const = default;
};

// From the name of a powercap zone; `parent` is that of the zone it is nested in, "" at the top. The name alone counts:
// the number in a zone's path is the order of registration.
[[nodiscard]] Domain parse_zone_name(std::string_view name, const Domain* parent);

// "package/0", "dram/1/die/1".
[[nodiscard]] std::string domain_name(const Domain& domain);

// An energy counter channel with column, domain, scope and the sum rule: packages and DRAM are in the total; core and
// uncore are inside a package, psys contains all of them, and what is unknown is never added.
[[nodiscard]] Channel energy_channel(const Domain& domain);

}  // namespace ergometer::rapl
