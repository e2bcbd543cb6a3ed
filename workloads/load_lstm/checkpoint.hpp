// A trained network on disk, with the scales it was trained with: LibTorch's archive of the parameters under their
// names, and beside them `workload`, `cities` (a name a line) and `scales` (minimum, maximum, mean by city).
#pragma once

#include <string>
#include <vector>

#include "load_lstm/network.hpp"

namespace ergometer::workload::load_lstm {

struct Checkpoint {
  Network network;  // on the CPU
  std::vector<Scale> scales;
};

// An error if `path` could not be written: asked before hours of training.
[[nodiscard]] Result<Done> check_writable(const std::string& path);

// Replaces the file as a whole: a reader sees the former or the new one.
[[nodiscard]] Result<Done> save_checkpoint(const std::string& path, const Network& network,
                                           const std::vector<Scale>& scales);
[[nodiscard]] Result<Checkpoint> load_checkpoint(const std::string& path);

}  // namespace ergometer::workload::load_lstm
