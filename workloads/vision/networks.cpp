#include "vision/networks.hpp"

namespace ergometer::workload::vision {

PixelStatistics imagenet_statistics() { return {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}}; }

ImageNetwork::ImageNetwork(const PixelStatistics& statistics) {
  const auto channels = static_cast<std::int64_t>(statistics.mean.size());
  const torch::Tensor mean = torch::tensor(statistics.mean).view({1, channels, 1, 1});
  const torch::Tensor deviation = torch::tensor(statistics.deviation).view({1, channels, 1, 1});
  pixel_scale_ = register_buffer("pixel_scale", 1.0 / (255.0 * deviation));
  pixel_offset_ = register_buffer("pixel_offset", -mean / deviation);
}

torch::Tensor ImageNetwork::normalise(const torch::Tensor& images) const {
  return (images * pixel_scale_).add_(pixel_offset_);
}

}  // namespace ergometer::workload::vision
