// Which logical CPUs a machine has and where they sit. Used by the backends whose domains follow sockets and dies.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/file.hpp"

namespace ergometer {

// The kernel's list form: "0,2-7". nullopt if it is none; an empty list is a list.
[[nodiscard]] std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// CPUs online now, ascending; empty if the kernel does not say. CPUs that are offline have no other files.
[[nodiscard]] std::vector<int> online_cpus(const HostRoot& root);

struct CpuPlace {
  int package = 0;
  int die = 0;
  int core = 0;  // unique in its package and die
};

// nullopt if the CPU has no topology files (it is offline). A missing die is die 0.
[[nodiscard]] std::optional<CpuPlace> cpu_place(const HostRoot& root, int cpu);

// Distinct packages of the CPUs online; 0 if unknown.
[[nodiscard]] int count_packages(const HostRoot& root);

}  // namespace ergometer
