// The pages that `ergometer report` writes, and what any page is made of. Used by report.cpp and compare.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "report/html_page.hpp"

namespace ergometer::cli {

// What html_page wants.
struct PageText {
  std::string title, fallback, json;
};

// Errors: those of load_run.
[[nodiscard]] Result<PageText> run_page(const std::filesystem::path& run, const PageFactors& factors);
// Errors: those of read_study_table.
[[nodiscard]] Result<PageText> study_page(const std::filesystem::path& study, const PageFactors& factors);

}  // namespace ergometer::cli
