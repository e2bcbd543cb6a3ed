// The networks of the vision workloads behind one interface. Used by the classifier task.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

namespace ergometer::workload::vision {

inline constexpr std::int64_t kImageNetClasses = 1000;
inline constexpr std::int64_t kXrayClasses = 2;  // negative, positive

// Mean and deviation of each channel's values between 0 and 1.
struct PixelStatistics {
  std::vector<float> mean;
  std::vector<float> deviation;
};
// Of ImageNet, as torchvision's training scripts use them for all networks.
[[nodiscard]] PixelStatistics imagenet_statistics();

struct Logits {
  torch::Tensor main;       // [batch, classes]
  torch::Tensor auxiliary;  // [batch, classes] of the auxiliary head in training; undefined where there is none
};

// Parameters and buffers are named and laid out as the reference's. Two buffers are added that the reference lacks, so
// that they move with the network: "pixel_scale" and "pixel_offset", [1, channels, 1, 1].
class ImageNetwork : public torch::nn::Module {
 public:
  explicit ImageNetwork(const PixelStatistics& statistics);

  // uint8 [batch, channels, height, width] in any memory layout to fp32 in the same layout: (value / 255 - mean) /
  // deviation.
  torch::Tensor normalise(const torch::Tensor& images) const;
  // Of normalised images.
  virtual Logits forward(const torch::Tensor& images) = 0;

 private:
  torch::Tensor pixel_scale_;
  torch::Tensor pixel_offset_;
};

// torchvision 0.26's vgg16(weights=None): no batch normalisation, 138,357,544 parameters.
[[nodiscard]] std::shared_ptr<ImageNetwork> make_vgg16();

// torchvision 0.26's resnet50(weights=None), 25,557,032 parameters: "v1.5", the stride is in the 3x3 convolution.
[[nodiscard]] std::shared_ptr<ImageNetwork> make_resnet50();

// torchvision 0.26's inception_v3(weights=None, aux_logits=True, transform_input=False), 27,161,264 parameters.
[[nodiscard]] std::shared_ptr<ImageNetwork> make_inception_v3();

// VGG-19 with batch normalisation for grey pictures: max-pooling 2 with stride 3, one linear layer 512 to 2;
// 20,035,266 parameters, named as torchvision's vgg19_bn ("features.0.weight", ...) and "classifier.weight". Open in
// the source: whether its convolutions have a bias (here as in torchvision: yes), its initial weights (here
// torchvision's), and what lies between the convolutions and the linear layer. At 224x224 the last pooling leaves 1x1,
// so that any pooling over the whole picture changes nothing; at other sizes it is the mean.
[[nodiscard]] std::shared_ptr<ImageNetwork> make_xray_vgg19();

}  // namespace ergometer::workload::vision
