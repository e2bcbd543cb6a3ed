// Machine: what one sampler measures, and where on the cluster a process is. Used by the election and for the record.
#pragma once

#include <filesystem>
#include <string>

#include "base/environment.hpp"
#include "device/host.hpp"

namespace ergometer {

struct Machine {
  std::string boot_id;              // the kernel's own, whatever the host root says
  std::string time_namespace;       // its number, as in /proc/self/ns/time; "" where kernels have none
  std::filesystem::path host_root;  // absolute; "" for the machine itself
  // Processes with the same clock see the same CLOCK_MONOTONIC.
  [[nodiscard]] std::string clock() const { return boot_id + "/" + time_namespace; }
  // Equal for all processes that measure the same things: 16 hex digits, safe in a file name.
  [[nodiscard]] std::string id() const;
};

// Reads a few kernel files; what cannot be read is "".
[[nodiscard]] Machine this_machine(const std::filesystem::path& host_root);

struct Whereabouts {
  std::string node;                 // SLURMD_NODENAME, else the host name
  std::string hostname;             // the host root's; "" if it tells none
  std::string job, step, job_user;  // Slurm's; "" outside a job
  std::string container;            // "docker", "podman", "apptainer NAME", "kubernetes POD", ...; "" outside
  std::string cgroup;               // path of the own control group
};

[[nodiscard]] Whereabouts find_whereabouts(const Host& host, const Environment& environment);

}  // namespace ergometer
