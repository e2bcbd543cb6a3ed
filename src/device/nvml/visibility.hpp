// Which GPUs a command can use, and in which order: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER as the driver
// understands them. Pure functions; used by discovery, tested on their own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/sensor.hpp"
#include "model/warning.hpp"

namespace ergometer::nvml {

struct VisibleCandidate {
  int index = 0;     // NVML's, which is the order of the PCI bus
  std::string uuid;  // "GPU-..."; empty if the device does not tell
  std::string name;
  std::string pci_bus_id;
};

// A compute instance of a GPU that is cut into slices.
struct MigInstance {
  std::string uuid;  // "MIG-..."
  int parent = 0;    // index of its GPU
  unsigned gpu_instance = 0, compute_instance = 0;
  std::optional<double> multiprocessors, memory_bytes;  // its part of the GPU, where the driver tells
};

struct Visibility {
  struct Entry {
    int index = 0;                    // NVML index of the whole GPU
    bool mig_slice = false;           // only a slice of it was given to the command
    std::vector<std::size_t> slices;  // those slices, as positions in the list given; none if it does not say
  };
  std::vector<Entry> order;      // by CUDA ordinal; each GPU once
  bool ordinals_certain = true;  // false: which GPU has which ordinal is not known
  std::vector<Warning> warnings;
};

// What CUDA itself answers under this environment: the PCI bus ids of its devices by ordinal.
using CudaDevices = std::vector<std::string>;

// True if the answer depends on CUDA's own order (fastest first), which only libcuda knows: different models, no
// CUDA_DEVICE_ORDER=PCI_BUS_ID, and a list that holds numbers.
[[nodiscard]] bool needs_cuda_order(const Environment& environment, const std::vector<VisibleCandidate>& gpus);

// Resolves the environment of the measured command. The list ends at its first entry that is invalid or negative; a
// device named twice leaves none; a unique prefix of a UUID works; empty is none, unset is all. `cuda` is libcuda's
// own answer where it was asked.
[[nodiscard]] Visibility resolve_visibility(const Environment& environment, const std::vector<VisibleCandidate>& gpus,
                                            const std::vector<MigInstance>& slices,
                                            const std::optional<CudaDevices>& cuda);

// "0000:3B:00.0" and "00000000:3b:00.0" alike as "0:3b:0.0"; text of another form unchanged in lower case.
[[nodiscard]] std::string canonical_bus_id(std::string_view bus_id);

// Asks libcuda for its devices, in this process's own environment. nullopt if it is not there, does not answer, or
// if this process and the command differ in a variable that decides the answer. Costs up to some 100 ms.
[[nodiscard]] std::optional<CudaDevices> ask_cuda(const Host& host, const Environment& environment);

}  // namespace ergometer::nvml
