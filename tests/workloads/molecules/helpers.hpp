// What several tests of the molecule networks need.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "molecules/data/collate.hpp"
#include "molecules/data/data_set.hpp"
#include "molecules/data/generator.hpp"
#include "molecules/workloads.hpp"

namespace ergometer::workload::molecules {

inline const std::vector<const Workload*>& all_workloads() {
  static const std::vector<const Workload*> all = {&kSchnet, &kDimenet, &kPna};
  return all;
}

inline GraphRule rule_of(const Workload& workload) {
  return {workload.name == "schnet" ? 10.0F : 5.0F, workload.name == "dimenet"};
}

// A task whose parameters are all random: DimeNet starts with zeros behind which every other gradient is 0.
inline std::unique_ptr<Task> random_task(const Workload& workload) {
  torch::manual_seed(3);
  auto task = workload.make_task({});
  const torch::NoGradGuard no_gradient;
  for (auto& parameter : task->network().parameters()) {
    if (parameter.abs().max().item<float>() == 0) parameter.normal_(0, 0.1);
  }
  return task;
}

inline std::vector<Molecule> some_molecules(std::int64_t count, std::uint64_t seed = 42) {
  std::vector<Molecule> molecules;
  for (std::int64_t i = 1; i <= count; ++i) molecules.push_back(generate_molecule(seed, i).molecule);
  return molecules;
}

inline std::vector<Labelled> labelled(const std::vector<Molecule>& molecules) {
  std::vector<Labelled> samples;
  for (const Molecule& molecule : molecules) {
    samples.push_back({&molecule, 0.5F - 0.25F * static_cast<float>(samples.size())});
  }
  return samples;
}

inline Shapes shapes_of(const std::vector<Molecule>& molecules, const GraphRule& rule, std::int64_t batch) {
  std::vector<MoleculeSizes> sizes;
  for (const Molecule& molecule : molecules) sizes.push_back(measure(molecule, rule.cutoff));
  if (!rule.triplets) {
    for (MoleculeSizes& size : sizes) size.triplets = 0;
  }
  return choose_shapes(sizes, batch);
}

// Greatest difference relative to the greatest value.
inline double worst(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).abs().max() / (b.abs().max() + 1e-12)).item<double>();
}

}  // namespace ergometer::workload::molecules
