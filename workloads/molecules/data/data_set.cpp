#include "molecules/data/data_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "molecules/data/generator.hpp"
#include "molecules/data/qm9.hpp"

namespace ergometer::workload::molecules {
namespace {

constexpr std::int64_t kSyntheticTraining = 8192;
constexpr std::int64_t kSyntheticValidation = 1024;

struct Parts {
  std::vector<Molecule> training;
  std::vector<Molecule> validation;
};

bool is_validation(std::int64_t number) { return scatter_bits(static_cast<std::uint64_t>(number)) % 10 == 0; }

Parts split_molecules(std::vector<Molecule> molecules) {
  Parts parts;
  for (Molecule& molecule : molecules) {
    auto& part = is_validation(molecule.number) ? parts.validation : parts.training;
    part.push_back(std::move(molecule));
  }
  const auto lend_first = [](std::vector<Molecule>& from, std::vector<Molecule>& to) {
    to.push_back(std::move(from.front()));
    from.erase(from.begin());
  };
  if (parts.validation.empty() && parts.training.size() > 1) lend_first(parts.training, parts.validation);
  if (parts.training.empty() && parts.validation.size() > 1) lend_first(parts.validation, parts.training);
  return parts;
}

Parts synthetic_parts(std::uint64_t seed) {
  Parts parts;
  for (std::int64_t number = 1; number <= kSyntheticTraining; ++number) {
    parts.training.push_back(generate_molecule(seed, number).molecule);
  }
  for (std::int64_t i = 1; i <= kSyntheticValidation; ++i) {
    parts.validation.push_back(generate_molecule(seed, kSyntheticTraining + i).molecule);
  }
  return parts;
}

Scale scale_of(const std::vector<Molecule>& molecules) {
  Scale scale;
  const auto count = static_cast<double>(molecules.size());
  for (const Molecule& molecule : molecules) scale.mean += atomisation_energy(molecule) / count;
  double variance = 0;
  for (const Molecule& molecule : molecules) {
    const double difference = atomisation_energy(molecule) - scale.mean;
    variance += difference * difference / count;
  }
  scale.deviation = variance > 0 ? std::sqrt(variance) : 1;
  return scale;
}

constexpr std::string_view kStateTag = "U0 atomisation eV";

}  // namespace

Result<Done> MoleculeData::set_scale(const std::string& state, const std::vector<Molecule>& training) {
  if (state.empty()) {
    scale_ = scale_of(training);
    return Done{};
  }
  const std::string_view text = state;
  const std::size_t comma = text.rfind(',');
  if (text.substr(0, kStateTag.size()) == kStateTag && comma != std::string_view::npos) {
    const auto mean = parse_number(text.substr(kStateTag.size(), comma - kStateTag.size()));
    const auto deviation = parse_number(text.substr(comma + 1));
    if (mean && deviation && *deviation > 0) {
      scale_ = {*mean, *deviation};
      return Done{};
    }
  }
  return Error{Fault::data, fmt::format("the checkpoint's scale of energies '{}' is not understood", state),
               "use a checkpoint that this version wrote"};
}

std::string MoleculeData::state() const {
  return fmt::format("{} {:.17g}, {:.17g}", kStateTag, scale_.mean, scale_.deviation);
}

Result<std::unique_ptr<DataSet>> MoleculeData::open(const DataOptions& options, Split split, const GraphRule& rule) {
  std::unique_ptr<MoleculeData> data(new MoleculeData);
  Parts parts;
  if (options.folder == "synthetic") {
    parts = synthetic_parts(options.seed);
  } else {
    auto qm9 = read_qm9(options.folder, options.strict);
    if (!qm9) return qm9.error();
    data->notes_ = std::move(qm9->notes);
    parts = split_molecules(std::move(qm9->molecules));
  }
  auto& molecules = split == Split::train ? parts.training : parts.validation;
  if (molecules.empty()) {
    return Error{Fault::data,
                 fmt::format("{}: one molecule cannot be both for training and for validation", options.folder),
                 "two molecules at least are needed"};
  }
  if (auto done = data->set_scale(options.state, parts.training); !done) return done.error();
  data->notes_.push_back(
      fmt::format("target: energy of atomisation U0 (of {} training molecules: mean {:.4f} eV, deviation {:.4f} eV)",
                  parts.training.size(), data->scale_.mean, data->scale_.deviation));
  data->rule_ = rule;
  data->batch_ = options.batch;
  if (options.graphs) {  // from both parts, so that both have the same shapes
    std::vector<MoleculeSizes> sizes;
    for (const auto* part : {&parts.training, &parts.validation}) {
      for (const Molecule& molecule : *part) sizes.push_back(measure(molecule, rule.cutoff));
    }
    if (!rule.triplets) {
      for (MoleculeSizes& size : sizes) size.triplets = 0;
    }
    data->shapes_ = choose_shapes(sizes, options.batch);
  }
  data->molecules_ = std::move(molecules);
  return std::unique_ptr<DataSet>(std::move(data));
}

double MoleculeData::normalised(std::int64_t sample) const {
  return (atomisation_energy(molecule(sample)) - scale_.mean) / scale_.deviation;
}

Result<Batch> MoleculeData::load(const std::vector<std::int64_t>& samples, std::uint64_t) const {
  std::vector<Labelled> chosen;
  for (const std::int64_t sample : samples) {
    chosen.push_back({&molecule(sample), static_cast<float>(normalised(sample))});
  }
  try {
    return collate(chosen, rule_, shapes_.sizes.empty() ? nullptr : &shapes_, batch_);
  } catch (const c10::Error& error) {  // out of memory
    return Error{Fault::data, error.what_without_backtrace(), {}};
  }
}

std::vector<std::pair<std::string, double>> MoleculeData::baselines(const std::vector<std::int64_t>& samples) const {
  double sum = 0;  // the mean predictor says 0
  for (const std::int64_t sample : samples) sum += normalised(sample) * normalised(sample);
  return {{"mean_predictor", sum / static_cast<double>(std::max<std::size_t>(1, samples.size()))}};
}

}  // namespace ergometer::workload::molecules
