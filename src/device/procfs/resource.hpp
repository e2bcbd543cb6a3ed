// The channels of the procfs sensors: resources of the measured process tree and of the node, never energy.
#pragma once

#include <string>
#include <utility>

#include "model/channel.hpp"

namespace ergometer::procfs {

// `scope` is tree or system; the domain has the same name.
inline Channel resource(Scope scope, std::string column, Quantity quantity, std::string unit, Behaviour behaviour,
                        std::string note = {}) {
  Channel c;
  c.column = std::move(column);
  c.quantity = quantity;
  c.unit = std::move(unit);
  c.behaviour = behaviour;
  c.domain = to_word(scope);
  c.scope = scope;
  c.in_total = false;
  c.note = std::move(note);
  return c;
}

}  // namespace ergometer::procfs
