#include "device/process_view.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <vector>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

constexpr int kMaxDepth = 4096;  // more generations than any tree has: /proc changes while it is read

// The number or numbers behind "KEY:" in /proc/PID/status.
std::vector<int> status_numbers(const HostRoot& root, const std::string& pid, std::string_view key) {
  std::vector<int> out;
  const auto text = read_file(root.path(fmt::format("/proc/{}/status", pid)), 1 << 16);
  for (const auto line : split(text ? std::string_view(*text) : std::string_view{}, '\n')) {
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    std::string_view rest = line.substr(key.size() + 1);
    while (!(rest = trim(rest)).empty()) {
      const auto end = rest.find_first_of(" \t");
      const auto number = parse_uint(rest.substr(0, end));
      if (!number || *number > INT32_MAX) return {};
      out.push_back(static_cast<int>(*number));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end);
    }
  }
  return out;
}

// Kernel threads live in the first process namespace only, and the second process of a machine is one.
bool shows_host_ids(const HostRoot& root) {
  const auto name = read_file(root.path("/proc/2/comm"), 4096);
  return name && trim(*name) == "kthreadd";
}

}  // namespace

ProcessView view_processes(const HostRoot& root, int root_pid, std::shared_ptr<const ProcessRoots> more_roots) {
  ProcessView view{root, std::nullopt, std::move(more_roots)};
  if (!shows_host_ids(root)) return view;
  const auto self = status_numbers(root, "self", "NSpid");
  if (self.empty()) return view;
  view.own_ids_are_host_ids = self.size() == 1;
  if (root_pid <= 0) root_pid = self.back();
  if (self.back() == root_pid) {
    view.tree_root = self.front();
    return view;
  }
  if (self.size() == 1) {
    view.tree_root = root_pid;
    return view;
  }
  for (const auto& entry : list_dir(root.path("/proc"))) {
    if (!parse_uint(entry)) continue;
    const auto ids = status_numbers(root, entry, "NSpid");
    if (ids.size() != self.size() || ids.back() != root_pid) continue;
    if (view.tree_root) return ProcessView{root, std::nullopt, nullptr};
    view.tree_root = ids.front();
  }
  return view;
}

Owner owner_of(const ProcessView& view, int host_pid) {
  if (!view.tree_root) return Owner::unknown;
  const bool more_can_be_told = !view.more_roots || view.own_ids_are_host_ids || view.more_roots->all().empty();
  const Owner other = more_can_be_told ? Owner::foreign : Owner::unknown;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (host_pid == *view.tree_root) return Owner::tree;
    if (view.more_roots && view.own_ids_are_host_ids && view.more_roots->contains(host_pid)) return Owner::tree;
    const auto parent = status_numbers(view.root, fmt::format("{}", host_pid), "PPid");
    if (parent.size() != 1) return depth == 0 ? Owner::unknown : other;
    if (parent[0] <= 1) return other;
    host_pid = parent[0];
  }
  return Owner::unknown;
}

}  // namespace ergometer
