#include "vision/picture_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "vision/classifier.hpp"
#include "vision/decode.hpp"

namespace ergometer::workload::vision {
namespace {

torch::Tensor empty_images(std::int64_t rows, std::int64_t channels, std::int64_t side) {
  return torch::empty({rows, channels, side, side},
                      torch::TensorOptions(torch::kUInt8).memory_format(torch::MemoryFormat::ChannelsLast));
}

// Rows without a label get the pixels of one with a label, or black if there is none.
void fill_gaps(std::uint8_t* images, const std::int64_t* labels, std::int64_t rows, std::int64_t bytes) {
  const std::int64_t* given = std::find_if(labels, labels + rows, [](std::int64_t label) { return label != kNoLabel; });
  const bool none = given == labels + rows;
  const std::uint8_t* from = none ? nullptr : images + (given - labels) * bytes;
  for (std::int64_t i = 0; i < rows; ++i) {
    if (labels[i] != kNoLabel) continue;
    if (none) {
      std::fill_n(images + i * bytes, bytes, std::uint8_t{0});
    } else {
      std::copy_n(from, bytes, images + i * bytes);
    }
  }
}

}  // namespace

Result<Batch> PictureSet::load(const std::vector<std::int64_t>& samples, std::uint64_t seed) const {
  try {
    return fill(samples, seed);
  } catch (const std::exception& exception) {  // LibTorch's, or no memory: this is a worker's thread
    const std::string text = exception.what();
    return Error{Fault::data, fmt::format("{}: {}", contents_.folder, text.substr(0, text.find('\n'))), {}};
  }
}

Result<Batch> PictureSet::fill(const std::vector<std::int64_t>& samples, std::uint64_t seed) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  const std::int64_t rows = graphs_ ? batch_ : count;
  const std::int64_t bytes = contents_.channels * contents_.side * contents_.side;
  Batch batch;
  batch.tensors = {empty_images(rows, contents_.channels, contents_.side),
                   torch::full({rows}, kNoLabel, torch::kInt64)};
  batch.shape = static_cast<std::size_t>(batch_ - rows);
  auto* images = batch.tensors[0].data_ptr<std::uint8_t>();
  auto* labels = batch.tensors[1].data_ptr<std::int64_t>();
  Workspace workspace;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t sample = samples[static_cast<std::size_t>(i)];
    const std::string path = contents_.folder + "/" + picture(sample).name;
    Random random(seed, static_cast<std::uint64_t>(sample));
    auto done = read_file(path, workspace.bytes);
    if (done) done = contents_.prepare(workspace, static_cast<int>(contents_.side), random, images + i * bytes);
    if (done) {
      labels[i] = picture(sample).label;
      ++batch.samples;
      continue;
    }
    if (strict_) {
      return Error{Fault::data, fmt::format("{}: {}", path, done.error().message),
                   "replace or remove the file, or leave --strict out: it is then skipped and counted"};
    }
    ++batch.skipped;
    const std::lock_guard lock(mutex_);
    unreadable_.emplace(sample, done.error().message);
  }
  fill_gaps(images, labels, rows, bytes);
  return batch;
}

std::string PictureSet::state() const {
  std::string text;
  if (contents_.keeps_class_names) {
    for (const std::string& name : contents_.class_names) text += name + '\n';
  }
  return text;
}

std::vector<std::string> PictureSet::notes() const {
  std::vector<std::string> notes = contents_.notes;
  const std::lock_guard lock(mutex_);
  for (const auto& [sample, reason] : unreadable_) {
    notes.push_back(fmt::format("{}/{}: {}; skipped", contents_.folder, picture(sample).name, reason));
  }
  return notes;
}

std::vector<std::pair<std::string, double>> PictureSet::baselines(const std::vector<std::int64_t>& samples) const {
  std::vector<double> counts(contents_.class_names.size(), 0.0);
  for (const std::int64_t sample : samples) counts[static_cast<std::size_t>(picture(sample).label)] += 1;
  double loss = 0;
  for (const double count : counts) {
    const double share = count / static_cast<double>(samples.size());
    if (count > 0) loss -= share * std::log(share);
  }
  return {{"class_frequencies", loss}};
}

bool PictureSet::is_unreadable(std::int64_t sample) const {
  const std::lock_guard lock(mutex_);
  return unreadable_.count(sample) != 0;
}

}  // namespace ergometer::workload::vision
