#include "device/procfs/procfs.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <set>
#include <tuple>

#include "base/number.hpp"
#include "base/text.hpp"
#include "device/cgroup.hpp"
#include "device/cpu_topology.hpp"
#include "device/procfs/system.hpp"
#include "device/procfs/tree.hpp"

namespace ergometer {
namespace {

std::string line_of(const HostRoot& root, std::string_view file) {
  const auto text = read_file(root.path(file), 4096);
  return text ? std::string(trim(*text)) : std::string();
}

// The first kilobytes of a file. /proc/cpuinfo makes one paragraph a CPU, each of which may ask that CPU for its clock:
// the whole file takes many milliseconds on a large machine.
std::string head_of(const std::filesystem::path& path) {
  std::string text(4096, '\0');
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  const ssize_t n = ::read(fd, text.data(), text.size());
  ::close(fd);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

std::string cpu_model(const HostRoot& root) {
  const auto text = head_of(root.path("/proc/cpuinfo"));
  for (const auto line : split(text, '\n'))
    if (line.starts_with("model name"))
      if (const auto colon = line.find(':'); colon != std::string_view::npos)
        return std::string(trim(line.substr(colon + 1)));
  return {};
}

CpuInfo describe_cpus(const HostRoot& root) {
  CpuInfo cpu;
  cpu.model = cpu_model(root);
  cpu.online = line_of(root, "/sys/devices/system/cpu/online");
  const auto online = online_cpus(root);
  if (!online.empty()) cpu.threads = static_cast<int>(online.size());
  std::set<int> packages;
  std::set<std::tuple<int, int, int>> cores;
  for (const int id : online)
    if (const auto place = cpu_place(root, id)) {
      packages.insert(place->package);
      cores.insert({place->package, place->die, place->core});
    }
  if (!packages.empty()) {
    cpu.sockets = static_cast<int>(packages.size());
    cpu.cores = static_cast<int>(cores.size());
  }
  return cpu;
}

std::optional<double> memory_total(const HostRoot& root) {
  const auto text = read_file(root.path("/proc/meminfo"), 1 << 16);
  if (!text) return std::nullopt;
  for (auto line : split(*text, '\n'))
    if (line.starts_with("MemTotal:") && line.ends_with(" kB"))
      if (const auto kb = parse_uint(line.substr(9, line.size() - 12))) return static_cast<double>(*kb) * 1024;
  return std::nullopt;
}

}  // namespace

void describe_node(const Host& host, Node& node) {
  const auto& root = host.root;
  node.hostname = line_of(root, "/proc/sys/kernel/hostname");
  node.boot_id = line_of(root, "/proc/sys/kernel/random/boot_id");
  node.kernel = line_of(root, "/proc/sys/kernel/osrelease");
  if (node.name.empty() && !node.hostname.empty()) node.name = file_name_of(node.hostname);
  node.cpu = describe_cpus(root);
  node.memory_bytes = memory_total(root);
  const auto limits = read_cgroup_limits(root);
  node.cpu.quota_cpus = limits.cpus;
  // "No limit" is also written as a number larger than any memory.
  if (limits.memory_bytes && (!node.memory_bytes || *limits.memory_bytes < *node.memory_bytes) &&
      *limits.memory_bytes < 0x1p62)
    node.memory_limit_bytes = limits.memory_bytes;
}

void discover_procfs(const Host& host, const DiscoverOptions& options, Discovery& out) {
  describe_node(host, out.node);
  out.sensors.push_back(procfs::make_tree_sensor(host, options.root_pid > 0 ? options.root_pid : ::getpid(),
                                                  options.more_roots));
  out.sensors.push_back(procfs::make_system_sensor(host));
  if (auto cpus = procfs::make_cpus_sensor(host))
    out.sensors.push_back(std::move(cpus));
  else
    out.node.absences.push_back({"procfs", "busy time by CPU",
                                 host.root.path("/sys/devices/system/cpu/online").string() + " cannot be read", ""});
}

}  // namespace ergometer
