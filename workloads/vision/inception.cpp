// Inception v3 (Szegedy et al. 2015, arXiv:1512.00567) as torchvision builds it, with the auxiliary head.
#include <vector>

#include "vision/networks.hpp"
#include "vision/norm_act.hpp"

namespace ergometer::workload::vision {
namespace {

namespace nn = torch::nn;
using torch::Tensor;
using Extent = torch::ExpandingArray<2>;  // one number for both, or {height, width}

// Convolution without bias, batch normalisation (epsilon 1e-3), activation: torchvision's BasicConv2d.
class ConvolutionImpl : public nn::Module {
 public:
  ConvolutionImpl(std::int64_t in, std::int64_t out, const Extent& kernel, const Extent& stride = 1,
                  const Extent& padding = 0)
      : conv_(register_module(
            "conv", nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(padding).bias(false)))),
        bn_(register_module("bn", nn::BatchNorm2d(nn::BatchNorm2dOptions(out).eps(0.001)))) {}

  Tensor forward(const Tensor& input) { return norm_relu(bn_, conv_->forward(input)); }

 private:
  nn::Conv2d conv_;
  nn::BatchNorm2d bn_;
};
TORCH_MODULE(Convolution);

// Convolutions one after the other.
Tensor chain(Tensor x, std::initializer_list<Convolution*> convolutions) {
  for (Convolution* convolution : convolutions) x = (*convolution)->forward(x);
  return x;
}

Tensor mean_3x3(const Tensor& x) { return torch::avg_pool2d(x, 3, 1, 1); }
Tensor halve(const Tensor& x) { return torch::max_pool2d(x, 3, 2); }

// A block registers its convolutions under torchvision's names.
class Block : public nn::Module {
 public:
  virtual Tensor forward(const Tensor& x) = 0;

 protected:
  Convolution add(const char* name, std::int64_t in, std::int64_t out, const Extent& kernel, const Extent& stride = 1,
                  const Extent& padding = 0) {
    return register_module(name, Convolution(in, out, kernel, stride, padding));
  }
};

class BlockA : public Block {
 public:
  BlockA(std::int64_t in, std::int64_t pool)
      : one_(add("branch1x1", in, 64, 1)),
        five_1_(add("branch5x5_1", in, 48, 1)),
        five_2_(add("branch5x5_2", 48, 64, 5, 1, 2)),
        double_1_(add("branch3x3dbl_1", in, 64, 1)),
        double_2_(add("branch3x3dbl_2", 64, 96, 3, 1, 1)),
        double_3_(add("branch3x3dbl_3", 96, 96, 3, 1, 1)),
        pool_(add("branch_pool", in, pool, 1)) {}

  Tensor forward(const Tensor& x) override {
    return torch::cat({chain(x, {&one_}), chain(x, {&five_1_, &five_2_}),
                       chain(x, {&double_1_, &double_2_, &double_3_}), chain(mean_3x3(x), {&pool_})},
                      1);
  }

 private:
  Convolution one_, five_1_, five_2_, double_1_, double_2_, double_3_, pool_;
};

class BlockB : public Block {
 public:
  explicit BlockB(std::int64_t in)
      : three_(add("branch3x3", in, 384, 3, 2)),
        double_1_(add("branch3x3dbl_1", in, 64, 1)),
        double_2_(add("branch3x3dbl_2", 64, 96, 3, 1, 1)),
        double_3_(add("branch3x3dbl_3", 96, 96, 3, 2)) {}

  Tensor forward(const Tensor& x) override {
    return torch::cat({chain(x, {&three_}), chain(x, {&double_1_, &double_2_, &double_3_}), halve(x)}, 1);
  }

 private:
  Convolution three_, double_1_, double_2_, double_3_;
};

class BlockC : public Block {
 public:
  BlockC(std::int64_t in, std::int64_t width)
      : one_(add("branch1x1", in, 192, 1)),
        seven_1_(add("branch7x7_1", in, width, 1)),
        seven_2_(add("branch7x7_2", width, width, {1, 7}, 1, {0, 3})),
        seven_3_(add("branch7x7_3", width, 192, {7, 1}, 1, {3, 0})),
        double_1_(add("branch7x7dbl_1", in, width, 1)),
        double_2_(add("branch7x7dbl_2", width, width, {7, 1}, 1, {3, 0})),
        double_3_(add("branch7x7dbl_3", width, width, {1, 7}, 1, {0, 3})),
        double_4_(add("branch7x7dbl_4", width, width, {7, 1}, 1, {3, 0})),
        double_5_(add("branch7x7dbl_5", width, 192, {1, 7}, 1, {0, 3})),
        pool_(add("branch_pool", in, 192, 1)) {}

  Tensor forward(const Tensor& x) override {
    return torch::cat(
        {chain(x, {&one_}), chain(x, {&seven_1_, &seven_2_, &seven_3_}),
         chain(x, {&double_1_, &double_2_, &double_3_, &double_4_, &double_5_}), chain(mean_3x3(x), {&pool_})},
        1);
  }

 private:
  Convolution one_, seven_1_, seven_2_, seven_3_, double_1_, double_2_, double_3_, double_4_, double_5_, pool_;
};

class BlockD : public Block {
 public:
  explicit BlockD(std::int64_t in)
      : three_1_(add("branch3x3_1", in, 192, 1)),
        three_2_(add("branch3x3_2", 192, 320, 3, 2)),
        seven_1_(add("branch7x7x3_1", in, 192, 1)),
        seven_2_(add("branch7x7x3_2", 192, 192, {1, 7}, 1, {0, 3})),
        seven_3_(add("branch7x7x3_3", 192, 192, {7, 1}, 1, {3, 0})),
        seven_4_(add("branch7x7x3_4", 192, 192, 3, 2)) {}

  Tensor forward(const Tensor& x) override {
    return torch::cat(
        {chain(x, {&three_1_, &three_2_}), chain(x, {&seven_1_, &seven_2_, &seven_3_, &seven_4_}), halve(x)}, 1);
  }

 private:
  Convolution three_1_, three_2_, seven_1_, seven_2_, seven_3_, seven_4_;
};

class BlockE : public Block {
 public:
  explicit BlockE(std::int64_t in)
      : one_(add("branch1x1", in, 320, 1)),
        three_1_(add("branch3x3_1", in, 384, 1)),
        three_2a_(add("branch3x3_2a", 384, 384, {1, 3}, 1, {0, 1})),
        three_2b_(add("branch3x3_2b", 384, 384, {3, 1}, 1, {1, 0})),
        double_1_(add("branch3x3dbl_1", in, 448, 1)),
        double_2_(add("branch3x3dbl_2", 448, 384, 3, 1, 1)),
        double_3a_(add("branch3x3dbl_3a", 384, 384, {1, 3}, 1, {0, 1})),
        double_3b_(add("branch3x3dbl_3b", 384, 384, {3, 1}, 1, {1, 0})),
        pool_(add("branch_pool", in, 192, 1)) {}

  Tensor forward(const Tensor& x) override {
    const Tensor three = chain(x, {&three_1_});
    const Tensor twice = chain(x, {&double_1_, &double_2_});
    return torch::cat({chain(x, {&one_}), chain(three, {&three_2a_}), chain(three, {&three_2b_}),
                       chain(twice, {&double_3a_}), chain(twice, {&double_3b_}), chain(mean_3x3(x), {&pool_})},
                      1);
  }

 private:
  Convolution one_, three_1_, three_2a_, three_2b_, double_1_, double_2_, double_3a_, double_3b_, pool_;
};

class AuxiliaryHead : public Block {
 public:
  explicit AuxiliaryHead(std::int64_t in)
      : conv0_(add("conv0", in, 128, 1)),
        conv1_(add("conv1", 128, 768, 5)),
        fc_(register_module("fc", nn::Linear(768, kImageNetClasses))) {
    nn::init::normal_(fc_->weight, 0, 0.001);
  }

  Tensor forward(const Tensor& x) override {
    // The reference fails where x is smaller than 17x17 (pictures below 299x299); 5x5 means serve there.
    constexpr std::int64_t kLeast = 17;
    const bool small = x.size(2) < kLeast || x.size(3) < kLeast;
    const Tensor pooled = small ? torch::adaptive_avg_pool2d(x, {5, 5}) : torch::avg_pool2d(x, 5, 3);
    return fc_->forward(chain(pooled, {&conv0_, &conv1_}).mean({2, 3}));
  }

 private:
  Convolution conv0_, conv1_;
  nn::Linear fc_;
};

class InceptionV3 : public ImageNetwork {
 public:
  InceptionV3() : ImageNetwork(imagenet_statistics()) {
    // torchvision draws convolutions and the linear layer from a normal distribution of deviation 0.1, cut off at 2
    // (twenty deviations: never). The smaller deviation that it asks for in AuxLogits.conv1 reaches no weight there.
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* conv = module->as<nn::Conv2d>()) nn::init::normal_(conv->weight, 0, 0.1);
    }
    nn::init::normal_(fc_->weight, 0, 0.1);
  }

  Logits forward(const Tensor& images) override {
    Tensor x = chain(images, {&conv_1a_, &conv_2a_, &conv_2b_});
    x = chain(halve(x), {&conv_3b_, &conv_4a_});
    x = halve(x);
    for (const auto& block : middle_) x = block->forward(x);
    Logits logits;
    if (is_training()) logits.auxiliary = auxiliary_->forward(x);
    for (const auto& block : last_) x = block->forward(x);
    logits.main = fc_->forward(dropout_->forward(x.mean({2, 3})));
    return logits;
  }

 private:
  Convolution stem(const char* name, std::int64_t in, std::int64_t out, const Extent& kernel, const Extent& stride = 1,
                   const Extent& padding = 0) {
    return register_module(name, Convolution(in, out, kernel, stride, padding));
  }
  template <class Kind, class... Sizes>
  std::shared_ptr<Block> block(const char* name, Sizes... sizes) {
    return register_module(name, std::make_shared<Kind>(std::int64_t{sizes}...));
  }

  Convolution conv_1a_ = stem("Conv2d_1a_3x3", 3, 32, 3, 2);
  Convolution conv_2a_ = stem("Conv2d_2a_3x3", 32, 32, 3);
  Convolution conv_2b_ = stem("Conv2d_2b_3x3", 32, 64, 3, 1, 1);
  Convolution conv_3b_ = stem("Conv2d_3b_1x1", 64, 80, 1);
  Convolution conv_4a_ = stem("Conv2d_4a_3x3", 80, 192, 3);
  std::vector<std::shared_ptr<Block>> middle_ = {
      block<BlockA>("Mixed_5b", 192, 32),  block<BlockA>("Mixed_5c", 256, 64),  block<BlockA>("Mixed_5d", 288, 64),
      block<BlockB>("Mixed_6a", 288),      block<BlockC>("Mixed_6b", 768, 128), block<BlockC>("Mixed_6c", 768, 160),
      block<BlockC>("Mixed_6d", 768, 160), block<BlockC>("Mixed_6e", 768, 192)};
  std::shared_ptr<Block> auxiliary_ = block<AuxiliaryHead>("AuxLogits", 768);
  std::vector<std::shared_ptr<Block>> last_ = {block<BlockD>("Mixed_7a", 768), block<BlockE>("Mixed_7b", 1280),
                                               block<BlockE>("Mixed_7c", 2048)};
  nn::Dropout dropout_ = register_module("dropout", nn::Dropout(0.5));
  nn::Linear fc_ = register_module("fc", nn::Linear(2048, kImageNetClasses));
};

}  // namespace

std::shared_ptr<ImageNetwork> make_inception_v3() { return std::make_shared<InceptionV3>(); }

}  // namespace ergometer::workload::vision
