// VGG (Simonyan and Zisserman 2014, arXiv:1409.1556) in the two forms of networks.hpp.
#include <string>
#include <vector>

#include "vision/networks.hpp"
#include "vision/norm_act.hpp"

namespace ergometer::workload::vision {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

// Output channels of the 3x3 convolutions; a stage ends with a pooling.
using Stages = std::vector<std::vector<std::int64_t>>;

// As torchvision's VGG initialises itself.
void initialise(nn::Module& network) {
  for (const auto& module : network.modules(/*include_self=*/false)) {
    if (auto* convolution = module->as<nn::Conv2d>()) {
      nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
      nn::init::zeros_(convolution->bias);
    } else if (auto* linear = module->as<nn::Linear>()) {
      nn::init::normal_(linear->weight, 0, 0.01);
      nn::init::zeros_(linear->bias);
    }
  }
}

// The convolutions, numbered as in torchvision's Sequential, where activations and poolings count too.
class FeaturesImpl : public nn::Module {
 public:
  FeaturesImpl(const Stages& stages, std::int64_t channels, bool batch_norm, std::int64_t pool_stride)
      : batch_norm_(batch_norm), pool_(F::MaxPool2dFuncOptions(2).stride(pool_stride)) {
    int number = 0;
    for (const auto& stage : stages) {
      for (const std::int64_t width : stage) {
        convolutions_.push_back(
            register_module(std::to_string(number++), nn::Conv2d(nn::Conv2dOptions(channels, width, 3).padding(1))));
        if (batch_norm) norms_.push_back(register_module(std::to_string(number++), nn::BatchNorm2d(width)));
        ++number;  // the activation
        channels = width;
      }
      stage_ends_.push_back(convolutions_.size());
      ++number;  // the pooling
    }
  }

  torch::Tensor forward(torch::Tensor x) {
    std::size_t i = 0;
    for (const std::size_t end : stage_ends_) {
      for (; i < end; ++i) {
        x = convolutions_[i]->forward(x);
        x = batch_norm_ ? norm_relu(norms_[i], x) : x.relu_();
      }
      x = F::max_pool2d(x, pool_);
    }
    return x;
  }

 private:
  bool batch_norm_;
  F::MaxPool2dFuncOptions pool_;
  std::vector<nn::Conv2d> convolutions_;
  std::vector<nn::BatchNorm2d> norms_;
  std::vector<std::size_t> stage_ends_;
};
TORCH_MODULE(Features);

class Vgg16 : public ImageNetwork {
 public:
  Vgg16()
      : ImageNetwork(imagenet_statistics()),
        features_(register_module(
            "features",
            Features(Stages{{64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}}, 3, false, 2))),
        classifier_(register_module(
            "classifier", nn::Sequential(nn::Linear(512 * kPooled * kPooled, 4096), nn::ReLU(nn::ReLUOptions(true)),
                                         nn::Dropout(0.5), nn::Linear(4096, 4096), nn::ReLU(nn::ReLUOptions(true)),
                                         nn::Dropout(0.5), nn::Linear(4096, kImageNetClasses)))) {
    initialise(*this);
  }

  Logits forward(const torch::Tensor& images) override {
    torch::Tensor x = features_->forward(images);
    // At 224x224 the pooling to 7x7 that torchvision runs is the identity.
    if (x.size(2) != kPooled || x.size(3) != kPooled) x = torch::adaptive_avg_pool2d(x, {kPooled, kPooled});
    return {classifier_->forward(torch::flatten(x, 1)), {}};
  }

 private:
  static constexpr std::int64_t kPooled = 7;
  Features features_;
  nn::Sequential classifier_;
};

class XrayVgg19 : public ImageNetwork {
 public:
  XrayVgg19()
      : ImageNetwork({{0.8180F}, {0.1748F}}),
        features_(register_module(
            "features",
            Features(Stages{{64, 64}, {128, 128}, {256, 256, 256, 256}, {512, 512, 512, 512}, {512, 512, 512, 512}}, 1,
                     true, 3))),
        classifier_(register_module("classifier", nn::Linear(512, kXrayClasses))) {
    initialise(*this);
  }

  Logits forward(const torch::Tensor& images) override {
    return {classifier_->forward(features_->forward(images).mean({2, 3})), {}};
  }

 private:
  Features features_;
  nn::Linear classifier_;
};

}  // namespace

std::shared_ptr<ImageNetwork> make_vgg16() { return std::make_shared<Vgg16>(); }

std::shared_ptr<ImageNetwork> make_xray_vgg19() { return std::make_shared<XrayVgg19>(); }

}  // namespace ergometer::workload::vision
