#include "run_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "base/file.hpp"
#include "base/text.hpp"

namespace ergometer::cli {
namespace {

namespace fs = std::filesystem;

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local);
  return text.data();
}

// Makes STORE/NAME-TIME, with a number behind it if that is taken. mkdir decides, so two runs at once never meet.
Result<RunFolder> new_folder(const fs::path& store, const std::string& name) {
  std::error_code ec;
  fs::create_directories(store, ec);
  if (ec) return tl::unexpected(errno_error("create", store, ec.value()));
  const std::string base = file_name_of(name) + "-" + time_stamp();
  for (int n = 1; n < 10000; ++n) {
    const auto path = store / (n == 1 ? base : fmt::format("{}-{}", base, n));
    if (::mkdir(path.c_str(), 0777) == 0) return RunFolder{fs::absolute(path).lexically_normal(), true};
    if (errno != EEXIST) return tl::unexpected(errno_error("create", path, errno));
  }
  return fail(ErrorCode::exists, fmt::format("no free name for a run in {}", store.string()), "give one with -o RUN");
}

}  // namespace

Result<RunFolder> run_folder(const fs::path& output, const fs::path& store, const std::string& name) {
  if (output.empty()) return new_folder(store, name);
  std::error_code ec;
  const bool there = fs::exists(output, ec);
  return RunFolder{fs::absolute(output).lexically_normal(), !there};
}

}  // namespace ergometer::cli
