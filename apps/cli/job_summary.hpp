// `ergometer job --summary`: a month of a user or an account. Used by job.cpp.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "command.hpp"
#include "job_runs.hpp"

namespace ergometer::cli {

struct SummaryWish {
  std::string user, account;
  std::string month;  // "2026-11"; "" is the current one
  bool json = false;
};

// Prints and returns the exit code.
[[nodiscard]] int print_job_summary(const SummaryWish& wish, const JobPlaces& places, const Environment& environment);

}  // namespace ergometer::cli
