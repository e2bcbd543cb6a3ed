// Which AMD GPUs a command can use: ROCR_VISIBLE_DEVICES, then HIP_VISIBLE_DEVICES (or CUDA_VISIBLE_DEVICES,
// GPU_DEVICE_ORDINAL), as ROCm documents them. A pure function; used by the amdgpu discovery.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "model/warning.hpp"

namespace ergometer::amdgpu {

struct Visibility {
  std::vector<std::size_t> order;  // GPUs by ordinal, as positions in the list given
  // Set where a value has a form that the documentation does not explain, or counts in an order that is not known: then
  // every GPU is in `order`, and which of them the command uses is not known.
  std::optional<Warning> unknown;
};

// `uuids`: "GPU-<unique id>" or "" by runtime order. `order_known`: false if that order is a guess.
[[nodiscard]] Visibility resolve_visibility(const Environment& environment, const std::vector<std::string>& uuids,
                                            bool order_known);

}  // namespace ergometer::amdgpu
