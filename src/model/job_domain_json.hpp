// A domain in a job's record (docs/job-record.md). Used by ergometerd, which goes on with its own records, and by `ergometer job`.
#pragma once

#include "base/json_object.hpp"
#include "model/summary.hpp"

namespace ergometer {

// Keys that are missing or null stay unset; unknown words of scope and method are complained of to `o`.
[[nodiscard]] DomainEnergy job_domain_from(JsonObject& o);

}  // namespace ergometer
