#include "device/cgroup.hpp"

#include <algorithm>
#include <string>
#include <system_error>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {
namespace fs = std::filesystem;

struct Membership {
  std::vector<std::string> controllers;  // empty: version 2
  std::string path;
};

// Lines of /proc/self/cgroup: "4:memory:/job" (version 1), "0::/job" (version 2).
std::vector<Membership> memberships(const HostRoot& root) {
  std::vector<Membership> out;
  const auto text = read_file(root.path("/proc/self/cgroup"), 1 << 16);
  for (const auto line : split(text ? std::string_view(*text) : std::string_view{}, '\n')) {
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    Membership m;
    for (const auto name : split(line.substr(first + 1, second - first - 1), ','))
      if (!name.empty()) m.controllers.emplace_back(name);
    m.path = line.substr(second + 1);
    // A path that leads out of the mounted part ("/../x") belongs to another namespace.
    if (m.path.find("..") == std::string::npos) out.push_back(std::move(m));
  }
  return out;
}

// Folders from the own group up to the root of the hierarchy that has `controller`, for both versions and the usual
// mount points. Inside a container the recorded path may not exist below the mount; the mount then is the own group.
std::vector<fs::path> group_folders(const HostRoot& root, std::string_view controller) {
  std::vector<fs::path> out;
  const auto groups = memberships(root);
  const auto add = [&](const fs::path& mount, bool version2) {
    std::error_code ec;
    if (!fs::is_directory(mount, ec)) return;
    std::string path;
    for (const auto& m : groups)
      if (version2 ? m.controllers.empty() : std::ranges::find(m.controllers, controller) != m.controllers.end())
        path = m.path;
    for (fs::path below = fs::path(path).relative_path(); !below.empty(); below = below.parent_path())
      if (fs::is_directory(mount / below, ec)) out.push_back(mount / below);
    out.push_back(mount);
  };
  add(root.path("/sys/fs/cgroup/unified"), true);
  add(root.path("/sys/fs/cgroup/" + std::string(controller)), false);
  if (controller == "cpu") add(root.path("/sys/fs/cgroup/cpu,cpuacct"), false);
  if (controller == "cpuacct") add(root.path("/sys/fs/cgroup/cpu,cpuacct"), false);
  add(root.path("/sys/fs/cgroup"), true);
  return out;
}

void keep_smaller(std::optional<double>& limit, std::optional<double> value) {
  if (value && *value > 0 && (!limit || *value < *limit)) limit = value;
}

std::optional<double> number_in(const fs::path& file) {
  const auto text = read_file(file, 4096);
  return text ? parse_double(*text) : std::nullopt;  // "max" is no number: no limit
}

// Version 2: "800000 100000" or "max 100000".
std::optional<double> quota_in(const fs::path& file) {
  const auto text = read_file(file, 4096);
  if (!text) return std::nullopt;
  const auto parts = split(trim(*text), ' ');
  const auto quota = parse_double(parts[0]);
  const auto period = parts.size() > 1 ? parse_double(parts[1]) : std::nullopt;
  if (!quota || !period || *period <= 0) return std::nullopt;
  return *quota / *period;
}

fs::path first_existing(const std::vector<fs::path>& folders, const char* name) {
  std::error_code ec;
  for (const auto& folder : folders)
    if (fs::is_regular_file(folder / name, ec)) return folder / name;
  return {};
}

}  // namespace

CgroupLimits read_cgroup_limits(const HostRoot& root) {
  CgroupLimits out;
  for (const auto& folder : group_folders(root, "memory")) {
    keep_smaller(out.memory_bytes, number_in(folder / "memory.max"));
    keep_smaller(out.memory_bytes, number_in(folder / "memory.limit_in_bytes"));
  }
  for (const auto& folder : group_folders(root, "cpu")) {
    keep_smaller(out.cpus, quota_in(folder / "cpu.max"));
    const auto quota = number_in(folder / "cpu.cfs_quota_us");
    const auto period = number_in(folder / "cpu.cfs_period_us");
    if (quota && period && *period > 0) keep_smaller(out.cpus, *quota / *period);
  }
  return out;
}

CgroupUsage find_cgroup_usage(const HostRoot& root) {
  const auto memory = group_folders(root, "memory");
  CgroupUsage out;
  out.memory_bytes = first_existing(memory, "memory.current");
  if (out.memory_bytes.empty()) out.memory_bytes = first_existing(memory, "memory.usage_in_bytes");
  out.cpu_stat = first_existing(group_folders(root, "cpu"), "cpu.stat");
  out.cpu_ns = first_existing(group_folders(root, "cpuacct"), "cpuacct.usage");
  // Version 1 has a cpu.stat too, without the time used.
  if (!out.cpu_ns.empty()) out.cpu_stat.clear();
  return out;
}

std::optional<double> cgroup_cpu_seconds(std::string_view text) {
  if (const auto ns = parse_uint(text)) return static_cast<double>(*ns) / 1e9;
  for (const auto line : split(text, '\n'))
    if (line.starts_with("usage_usec "))
      if (const auto us = parse_uint(line.substr(11))) return static_cast<double>(*us) / 1e6;
  return std::nullopt;
}

}  // namespace ergometer
