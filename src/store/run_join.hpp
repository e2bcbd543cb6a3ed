// How several machines agree on one run directory on storage that they share: nothing is locked, since locks on network
// file systems cannot be relied on; a hard link decides who writes run.json and a rename who owns a node's folder.
// Used by RunWriter::join.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "model/manifest.hpp"

namespace ergometer {

// Creates `dir` with run.json, or finds that another machine of the same launch did. Returns the run's identity as it
// stands there, which is the one of whoever was first. Errors (exists): a folder of something else, a run of one
// machine, a run of another launch (another Parts::run_key). `run.parts` must be set.
[[nodiscard]] Result<Manifest> begin_or_find_run(const std::filesystem::path& dir, const Manifest& run);

// Makes RUN/nodes/NODE with part.json, samples and markers, as a whole. NODE is the name wanted by `part.place`, or
// that name with 8 digits of the boot id where another machine has it. Returns NODE. Error (exists): this machine has
// its part in the run already.
[[nodiscard]] Result<std::string> claim_node(const std::filesystem::path& dir, Manifest part);

}  // namespace ergometer
