#include "output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.hpp"

namespace ergometer::cli {

namespace fs = std::filesystem;

Result<OutputFile> OutputFile::open(const std::string& target) {
  OutputFile out;
  if (target.empty()) return out;
  if (auto ok = check_parent(target); !ok) return tl::unexpected(ok.error());
  out.target_ = target;
  out.temporary_ = fmt::format("{}.tmp{}", target, ::getpid());
  out.file_ = std::fopen(out.temporary_.c_str(), "wxe");
  if (!out.file_) {
    out.temporary_.clear();
    return tl::unexpected(errno_error("create", target, errno));
  }
  return out;
}

OutputFile::OutputFile(OutputFile&& o) noexcept
    : target_(std::move(o.target_)),
      temporary_(std::exchange(o.temporary_, {})),
      file_(std::exchange(o.file_, nullptr)) {}

OutputFile::~OutputFile() {
  if (file_) std::fclose(file_);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

fs::path OutputFile::name() const { return file_ ? fs::path(temporary_) : fs::path("standard output"); }

Result<void> OutputFile::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_ ? file_ : stdout) == text.size()) return {};
  return tl::unexpected(errno_error("write", name(), errno));
}

Result<void> OutputFile::commit() {
  if (std::fflush(file_ ? file_ : stdout) != 0) return tl::unexpected(errno_error("write", name(), errno));
  if (!file_) return {};
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!closed) return tl::unexpected(errno_error("write", temporary_, errno));
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    return tl::unexpected(errno_error("write", target_, errno));
  temporary_.clear();
  return {};
}

Result<void> check_parent(const fs::path& output) {
  std::error_code ec;
  const auto parent = fs::absolute(output, ec).parent_path();
  if (fs::is_directory(parent, ec)) return {};
  return fail(ErrorCode::not_found, fmt::format("{} cannot be written: there is no folder {}", output.string(), parent.string()),
              "make it, or name another file with -o");
}

Result<void> refuse_input(const fs::path& folder, const fs::path& output) {
  std::error_code ec;
  for (auto it = fs::recursive_directory_iterator(folder, ec); !ec && it != fs::recursive_directory_iterator();
       it.increment(ec)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    if (auto ok = refuse_same_file(it->path(), output); !ok) return ok;
  }
  return {};
}

}  // namespace ergometer::cli
