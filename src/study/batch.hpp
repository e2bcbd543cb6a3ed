// Runs as jobs of Slurm: one sbatch job a cell or a block, with the constraint of its nodes, collected later. A job runs
// the engine on its node for its runs, with a journal of its own in the study's folder, which all nodes must see. Used by
// `ergometer study run` and by the jobs.
#pragma once

#include "base/environment.hpp"
#include "study/cell_command.hpp"
#include "study/engine.hpp"

namespace ergometer {

// Submits what is neither done nor in a job that waits or runs; a job that is gone without its runs is submitted again.
// Writes table.json. Errors: no sbatch, what it refused.
[[nodiscard]] Result<EngineResult> submit_study(const StudyFolder& study, const EngineWorld& world, bool again);

// What a job does: `runs` as submit_study wrote them, the journal named after the job.
[[nodiscard]] Result<EngineTask> job_task(const std::string& runs, const Environment& environment);

}  // namespace ergometer
