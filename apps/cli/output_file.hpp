// Where an export's text goes. Used by the export commands.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ergometer::cli {

// Standard output, or a temporary file that commit() renames over the target: readers see the old or the new content.
class OutputFile {
 public:
  // "" is standard output.
  [[nodiscard]] static Result<OutputFile> open(const std::string& target);
  OutputFile(OutputFile&& o) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // without commit() nothing is left behind
  [[nodiscard]] Result<void> write(std::string_view text);
  [[nodiscard]] Result<void> commit();

 private:
  OutputFile() = default;
  [[nodiscard]] std::filesystem::path name() const;
  std::string target_, temporary_;
  std::FILE* file_ = nullptr;
};

// The folder that `output` would lie in must be there.
[[nodiscard]] Result<void> check_parent(const std::filesystem::path& output);

// The output must not be a file inside `folder`, by whatever name it is reached.
[[nodiscard]] Result<void> refuse_input(const std::filesystem::path& folder, const std::filesystem::path& output);

}  // namespace ergometer::cli
