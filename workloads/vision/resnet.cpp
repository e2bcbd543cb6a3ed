// ResNet-50 (He et al. 2015, arXiv:1512.03385) as torchvision builds it.
#include "vision/networks.hpp"
#include "vision/norm_act.hpp"

namespace ergometer::workload::vision {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kExpansion = 4;

nn::Conv2d unbiased(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// 1x1 to `width` channels, 3x3 with the stride, 1x1 to 4 * width, plus the input, projected where the shapes differ.
class BottleneckImpl : public nn::Module {
 public:
  BottleneckImpl(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1_(register_module("conv1", unbiased(in, width, 1, 1))),
        bn1_(register_module("bn1", nn::BatchNorm2d(width))),
        conv2_(register_module("conv2", unbiased(width, width, 3, stride))),
        bn2_(register_module("bn2", nn::BatchNorm2d(width))),
        conv3_(register_module("conv3", unbiased(width, width * kExpansion, 1, 1))),
        bn3_(register_module("bn3", nn::BatchNorm2d(width * kExpansion))) {
    if (stride == 1 && in == width * kExpansion) return;
    projection_ = unbiased(in, width * kExpansion, 1, stride);
    projection_bn_ = nn::BatchNorm2d(width * kExpansion);
    register_module("downsample", nn::Sequential(projection_, projection_bn_));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = norm_relu(bn1_, conv1_->forward(input));
    x = norm_relu(bn2_, conv2_->forward(x));
    x = conv3_->forward(x);
    if (projection_.is_empty()) return norm_add_relu(bn3_, x, input);
    return norm_add_relu(bn3_, x, normalised(projection_bn_, projection_->forward(input)));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Conv2d conv3_;
  nn::BatchNorm2d bn3_;
  nn::Conv2d projection_{nullptr};
  nn::BatchNorm2d projection_bn_{nullptr};
};
TORCH_MODULE(Bottleneck);

nn::Sequential layer(std::int64_t in, std::int64_t width, std::int64_t blocks, std::int64_t stride) {
  nn::Sequential all;
  for (std::int64_t i = 0; i < blocks; ++i) {
    all->push_back(i == 0 ? Bottleneck(in, width, stride) : Bottleneck(width * kExpansion, width, 1));
  }
  return all;
}

class ResNet50 : public ImageNetwork {
 public:
  ResNet50()
      : ImageNetwork(imagenet_statistics()),
        conv1_(register_module("conv1", unbiased(3, 64, 7, 2))),
        bn1_(register_module("bn1", nn::BatchNorm2d(64))),
        layer1_(register_module("layer1", layer(64, 64, 3, 1))),
        layer2_(register_module("layer2", layer(256, 128, 4, 2))),
        layer3_(register_module("layer3", layer(512, 256, 6, 2))),
        layer4_(register_module("layer4", layer(1024, 512, 3, 2))),
        fc_(register_module("fc", nn::Linear(512 * kExpansion, kImageNetClasses))) {
    // As torchvision; its linear layer keeps PyTorch's default, and so do the normalisations (1 and 0).
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* conv = module->as<nn::Conv2d>()) {
        nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
      }
    }
  }

  Logits forward(const torch::Tensor& images) override {
    torch::Tensor x = norm_relu(bn1_, conv1_->forward(images));
    x = torch::max_pool2d(x, 3, 2, 1);
    x = layer1_->forward(x);
    x = layer2_->forward(x);
    x = layer3_->forward(x);
    x = layer4_->forward(x);
    return {fc_->forward(x.mean({2, 3})), {}};
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Sequential layer1_;
  nn::Sequential layer2_;
  nn::Sequential layer3_;
  nn::Sequential layer4_;
  nn::Linear fc_;
};

}  // namespace

std::shared_ptr<ImageNetwork> make_resnet50() { return std::make_shared<ResNet50>(); }

}  // namespace ergometer::workload::vision
