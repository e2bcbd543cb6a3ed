// The slurm backend: the power and energy that Slurm itself reports of this node and job, for comparison. Used by the
// registry.
#pragma once

#include "device/sensor.hpp"

namespace ergometer {

// Inside a job (SLURM_JOB_ID), or where "slurm" is asked for by name. Runs scontrol and sstat, each for at most 1.5 s.
void discover_slurm(const Host& host, const DiscoverOptions& options, Discovery& out);

}  // namespace ergometer
