// Node: what one machine is made of and which sensors it has; node.json in memory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/sensor_info.hpp"

namespace ergometer {

struct CpuInfo {
  std::string model;                  // "" if unknown
  std::optional<int> sockets, cores;  // physical
  std::optional<int> threads;         // logical CPUs online
  std::string online;                 // the kernel's list: "0,2-7"
  std::optional<double> quota_cpus;   // cgroup limit; unset: none
};

// A compute instance of a GPU that is cut into slices (MIG).
struct MigSlice {
  std::string uuid;
  int gpu_instance = 0, compute_instance = 0;
  std::optional<double> multiprocessors, memory_bytes;  // its part of the GPU
  bool visible = false;                                 // named to the measured command
};

struct GpuInfo {
  int index = 0;     // position in the driver's (PCI bus) order; domain "gpu/INDEX"
  std::string uuid;  // the key of the device
  std::string name, pci_bus_id;
  std::optional<double> memory_bytes;
  std::optional<double> power_limit_w, default_power_limit_w, min_power_limit_w, max_power_limit_w;
  // Whether the measured command can use it (CUDA_VISIBLE_DEVICES and the like). Only usable GPUs enter the run's
  // total; the others are recorded and shown apart.
  bool visible = true;
  std::optional<int> ordinal;    // its number inside the command (CUDA ordinal), if visible
  bool mig = false;              // power is of the whole GPU, shared by its slices
  std::vector<MigSlice> slices;  // if mig
  std::string state = "ok";      // "ok", "lost", "not measurable", "part" (inside what another meter reads)
  std::string note;
};

// Something that draws power and that the kernel tells of, without any reading of its power.
struct Component {
  std::string kind;   // "nic", "disk", "fan", "supply", "battery"
  std::string name;   // "eth0", "nvme0n1", "nct6775 fan2"
  std::string model;  // as the device says; "" if it does not
};

struct Node {
  std::string name;  // folder name below nodes/
  std::string hostname, boot_id, kernel;
  CpuInfo cpu;
  std::optional<double> memory_bytes;        // physical
  std::optional<double> memory_limit_bytes;  // cgroup limit below physical; unset: none
  std::vector<GpuInfo> gpus;
  std::vector<Component> components;
  std::map<std::string, std::string> versions;  // "nvidia-driver": "580.159.04"
  std::vector<SensorInfo> sensors;
  std::vector<Absence> absences;
};

}  // namespace ergometer
