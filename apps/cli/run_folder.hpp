// The folder of a new run. Used by the commands that record one.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace ergometer::cli {

struct RunFolder {
  std::filesystem::path path;  // absolute
  bool created = false;        // by us, so that it may go again if nothing starts
};

// `output` if it is not empty; else STORE/NAME-TIME, made here, with a number behind it if that is taken.
[[nodiscard]] Result<RunFolder> run_folder(const std::filesystem::path& output, const std::filesystem::path& store,
                                           const std::string& name);

}  // namespace ergometer::cli
