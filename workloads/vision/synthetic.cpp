// Random pictures in memory.
#include <algorithm>
#include <cstring>

#include "vision/classifier.hpp"
#include "vision/data.hpp"
#include "vision/random.hpp"

namespace ergometer::workload::vision {
namespace {

constexpr std::int64_t kTrainingSamples = 10'240;
constexpr std::int64_t kValidationSamples = 1'024;

torch::Tensor random_bytes(std::int64_t rows, const Form& form, std::int64_t side, Random& random) {
  torch::Tensor images =
      torch::empty({rows, form.channels, side, side},
                   torch::TensorOptions(torch::kUInt8).memory_format(torch::MemoryFormat::ChannelsLast));
  auto* bytes = images.data_ptr<std::uint8_t>();
  const auto count = static_cast<std::size_t>(images.numel());
  for (std::size_t i = 0; i < count; i += sizeof(std::uint64_t)) {
    const std::uint64_t value = random.next();
    std::memcpy(bytes + i, &value, std::min(sizeof value, count - i));
  }
  return images;
}

class SyntheticPictures : public DataSet {
 public:
  SyntheticPictures(const DataOptions& options, Split split, const Form& form, std::int64_t side)
      : size_(split == Split::train ? kTrainingSamples : kValidationSamples),
        batch_(options.batch),
        graphs_(options.graphs) {
    Random random(options.seed, split == Split::train ? 0 : 1);
    images_ = random_bytes(batch_, form, side, random);
    labels_ = torch::empty({batch_}, torch::kInt64);
    auto* labels = labels_.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < batch_; ++i) labels[i] = random.below(form.classes);
  }

  std::int64_t size() const override { return size_; }

  Result<Batch> load(const std::vector<std::int64_t>& samples, std::uint64_t) const override {
    const auto count = static_cast<std::int64_t>(samples.size());
    const std::int64_t rows = graphs_ ? batch_ : count;
    Batch batch;
    torch::Tensor labels = labels_.narrow(0, 0, rows);
    if (rows > count) {
      labels = labels.clone();
      labels.narrow(0, count, rows - count).fill_(kNoLabel);
    }
    batch.tensors = {images_.narrow(0, 0, rows), labels};
    batch.samples = count;
    batch.shape = static_cast<std::size_t>(batch_ - rows);
    return batch;
  }

 private:
  std::int64_t size_;
  std::int64_t batch_;
  bool graphs_;
  torch::Tensor images_;
  torch::Tensor labels_;
};

}  // namespace

Result<std::unique_ptr<DataSet>> open_synthetic(const DataOptions& options, Split split, const Form& form) {
  const auto side = side_of(form, options);
  if (!side) return side.error();
  return std::unique_ptr<DataSet>(std::make_unique<SyntheticPictures>(options, split, form, *side));
}

}  // namespace ergometer::workload::vision
