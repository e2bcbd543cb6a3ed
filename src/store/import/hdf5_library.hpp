// The HDF5 library, opened when a file needs it: whoever imports no HDF5 does without it. Only what reads tables of numbers is
// declared. Used by slurm_profile.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ergometer::foreign {

// A table of the file: a one-dimensional dataset of a compound type. Members that are no numbers are left out.
struct Hdf5Table {
  std::vector<std::string> path;             // names of its groups and its own: {"Steps", "0", "Nodes", "n1", "Energy"}
  std::vector<std::string> columns;
  std::vector<std::vector<double>> values;  // as columns
};

// All tables of a file, in the order of their names. Errors: unavailable (no HDF5 library on this machine; the hint names the
// package), corrupt (no HDF5 file, damaged, nested too deeply or too large), those of reading a file.
[[nodiscard]] Result<std::vector<Hdf5Table>> read_hdf5_tables(const std::filesystem::path& file);

}  // namespace ergometer::foreign
