#include "model/job_domain_json.hpp"

#include <optional>
#include <string>

namespace ergometer {

DomainEnergy job_domain_from(JsonObject& o) {
  DomainEnergy d;
  std::string scope, method;
  std::optional<double> coverage;
  o.read("domain", d.domain);
  o.read("device", d.device);
  o.read("scope", scope);
  o.read("method", method);
  o.read("measured", d.measured);
  o.read("energy_j", d.energy_j);
  o.read("uncertainty_j", d.uncertainty_j);
  o.read("coverage", coverage);
  o.read("mean_power_w", d.mean_power_w);
  o.read("max_power_w", d.max_power_w);
  o.read("in_total", d.in_total);
  d.coverage = coverage.value_or(0);
  const auto known_scope = scope_from(scope);
  const auto known_method = method_from(method);
  if (!known_scope) o.complain("scope", "the word of a scope");
  if (!known_method) o.complain("method", "the word of a method");
  d.scope = known_scope.value_or(d.scope);
  d.method = known_method.value_or(d.method);
  return d;
}

}  // namespace ergometer
