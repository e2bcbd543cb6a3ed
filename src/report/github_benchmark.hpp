// A run as the JSON of benchmark-action/github-action-benchmark (tool "customSmallerIsBetter"), so that a repository
// watches the energy of its jobs. Used by export --format github-benchmark.
#pragma once

#include <string>

#include "model/manifest.hpp"
#include "model/summary.hpp"

namespace ergometer {

// Energy and time of the run and of each family of regions (mean of one): "train/epoch: energy". Only what is known.
[[nodiscard]] std::string summary_github_benchmark(const Manifest& manifest, const Summary& summary);

}  // namespace ergometer
