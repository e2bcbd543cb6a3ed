// The world that the study engine needs, made from the command line's context. Used by study run, bench and batch jobs.
#pragma once

#include "run_process.hpp"
#include "study/engine.hpp"
#include "study_source.hpp"

namespace ergometer::cli {

// This program and its global options, as the first words of a command.
[[nodiscard]] std::vector<std::string> tool_words(const Context& context);

// `signals` must outlive what is returned.
[[nodiscard]] EngineWorld engine_world(const Context& context, const StudyFile& file, const std::string& site_command,
                                       const Signals& signals);

// Makes the study's folder if it is not there, and runs what is left. Returns the exit code.
[[nodiscard]] int run_target(const Context& context, const StudyOptions& options, const StudyTarget& target);

}  // namespace ergometer::cli
