// The parts of `ergometer study`, one a file.
#pragma once

#include "study_source.hpp"

namespace ergometer::cli {

[[nodiscard]] int study_plan(const Context& context, const StudyOptions& options);
[[nodiscard]] int study_run(const Context& context, const StudyOptions& options);
[[nodiscard]] int study_status(const StudyOptions& options);
[[nodiscard]] int study_show(const StudyOptions& options);
// For the engine: starts copies of a program as ranks; and what a batch job runs.
[[nodiscard]] int study_ranks(const Context& context, int ranks);
[[nodiscard]] int study_rank(const Context& context, const std::string& output, const std::vector<std::string>& measure);
[[nodiscard]] int study_job(const Context& context, const StudyOptions& options, const std::string& runs);

// The exit code for an error: what the user wrote, or what the machine lacks.
[[nodiscard]] int study_error(const Error& error);

}  // namespace ergometer::cli
