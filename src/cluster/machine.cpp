#include "cluster/machine.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <system_error>
#include <vector>

#include "base/file.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  const auto text = read_file(file, 1 << 16);
  return text ? std::string(trim(split(*text, '\n').front())) : std::string();
}

std::uint64_t hash_of_text(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

std::string variable_or_empty(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

// "time:[4026531834]" -> "4026531834"
std::string namespace_number(const char* link) {
  std::error_code ec;
  const auto target = fs::read_symlink(link, ec).string();
  const auto open = target.find('['), close = target.find(']');
  return ec || open == target.npos || close == target.npos ? std::string() : target.substr(open + 1, close - open - 1);
}

std::string own_host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] ? name.data() : "localhost";
}

// The path in the one hierarchy of version 2, else in version 1's of memory.
std::string own_cgroup() {
  const auto text = read_file("/proc/self/cgroup", 1 << 16);
  std::string path;
  for (const auto line : split(text ? std::string_view(*text) : std::string_view(), '\n')) {
    const auto parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::string here(line.substr(parts[0].size() + parts[1].size() + 2));
    if (parts[1] == "memory") return here;
    if (parts[0] == "0") path = here;
  }
  return path;
}

std::string container_of(const Environment& environment) {
  const auto named = [&](const char* kind, const char* name) {
    return std::string(kind) + " " + variable_or_empty(environment, name);
  };
  std::error_code ec;
  if (environment.contains("KUBERNETES_SERVICE_HOST")) return named("kubernetes", "HOSTNAME");
  if (environment.contains("APPTAINER_NAME")) return named("apptainer", "APPTAINER_NAME");
  if (environment.contains("SINGULARITY_NAME")) return named("apptainer", "SINGULARITY_NAME");
  if (fs::exists("/.dockerenv", ec)) return "docker";
  if (fs::exists("/run/.containerenv", ec)) return "podman";
  return variable_or_empty(environment, "container");
}

std::string user_name() {
  std::array<char, 4096> space{};
  passwd entry{}, *found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, space.data(), space.size(), &found) == 0 && found) return entry.pw_name;
  return {};
}

}  // namespace

std::string Machine::id() const {
  return fmt::format("{:016x}", hash_of_text(boot_id + "\n" + time_namespace + "\n" + host_root.string()));
}

Machine this_machine(const fs::path& host_root) {
  Machine machine;
  machine.boot_id = first_line("/proc/sys/kernel/random/boot_id");
  machine.time_namespace = namespace_number("/proc/self/ns/time");
  std::error_code ec;
  if (!HostRoot(host_root).is_real()) {
    machine.host_root = fs::weakly_canonical(host_root, ec);
    if (ec) machine.host_root = host_root;
  }
  return machine;
}

Whereabouts find_whereabouts(const Host& host, const Environment& environment) {
  Whereabouts here;
  here.hostname = first_line(host.root.path("/proc/sys/kernel/hostname"));
  // Several nodes of a batch system may lie on one host.
  here.node = variable_or_empty(environment, "SLURMD_NODENAME");
  if (here.node.empty()) here.node = here.hostname.empty() ? own_host_name() : here.hostname;
  here.job = variable_or_empty(environment, "SLURM_JOB_ID");
  here.step = variable_or_empty(environment, "SLURM_STEP_ID");
  if (!here.job.empty()) {
    here.job_user = variable_or_empty(environment, "SLURM_JOB_USER");
    if (here.job_user.empty()) here.job_user = user_name();
  }
  here.container = container_of(environment);
  here.cgroup = own_cgroup();
  return here;
}

}  // namespace ergometer
