#include "lockstep/models/deeplab/resnet.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <array>

#include "lockstep/error.h"

namespace lockstep::deeplab {
namespace {

using at::Tensor;

constexpr int64_t kStemWidth = 64;
constexpr int64_t kBottleneckGrowth = 4;

struct Depth {
  int64_t layers;
  bool has_bottlenecks;
  std::array<int64_t, 4> num_blocks;
};
constexpr std::array<Depth, 5> kDepths = {{{18, false, {2, 2, 2, 2}},
                                           {34, false, {3, 4, 6, 3}},
                                           {50, true, {3, 4, 6, 3}},
                                           {101, true, {3, 4, 23, 3}},
                                           {152, true, {3, 8, 36, 3}}}};

const Depth& depth_of(int64_t layers) {
  for (const Depth& depth : kDepths) {
    if (depth.layers == layers) return depth;
  }
  throw ConfigError(fmt::format(
      "--layers {} is not a ResNet depth: give 18, 34, 50, 101 or 152",
      layers));
}

// One residual block.
struct BlockConfig {
  int64_t inputs = 0;
  int64_t width = 0;
  int64_t outputs = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  bool is_bottleneck = true;
  bool has_downsample = false;
};

// The blocks of the four layers.
std::array<std::vector<BlockConfig>, 4> plan_blocks(const Depth& depth) {
  constexpr std::array<int64_t, 4> kWidths = {64, 128, 256, 512};
  constexpr std::array<int64_t, 4> kStrides = {1, 2, 1, 1};
  constexpr std::array<int64_t, 4> kDilations = {1, 1, 2, 4};
  std::array<std::vector<BlockConfig>, 4> plan;
  int64_t inputs = kStemWidth;
  for (size_t layer = 0; layer < plan.size(); ++layer) {
    for (int64_t i = 0; i < depth.num_blocks[layer]; ++i) {
      const bool is_first = i == 0;
      const int64_t width = kWidths[layer];
      // The last layer's dilation doubles with every block.
      const int64_t dilation = kDilations[layer] << (layer == 3 ? i : 0);
      const int64_t outputs =
          depth.has_bottlenecks ? kBottleneckGrowth * width : width;
      plan[layer].push_back(
          {.inputs = inputs,
           .width = width,
           .outputs = outputs,
           .stride = is_first ? kStrides[layer] : 1,
           .dilation = dilation,
           .is_bottleneck = depth.has_bottlenecks,
           .has_downsample = is_first && (layer > 0 || inputs != outputs)});
      inputs = outputs;
    }
  }
  return plan;
}

torch::nn::Conv2d conv1x1(int64_t inputs, int64_t outputs, int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(inputs, outputs, 1).stride(stride).bias(false));
}

torch::nn::Conv2d conv3x3(int64_t inputs, int64_t outputs, int64_t stride,
                          int64_t dilation) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, 3)
                               .stride(stride)
                               .padding(dilation)
                               .dilation(dilation)
                               .bias(false));
}

class ResidualBlock : public torch::nn::Module {
 public:
  explicit ResidualBlock(const BlockConfig& config) {
    if (config.is_bottleneck) {
      add(1, conv1x1(config.inputs, config.width, config.stride));
      add(2, conv3x3(config.width, config.width, 1, config.dilation));
      add(3, conv1x1(config.width, config.outputs, 1));
    } else {
      add(1, conv3x3(config.inputs, config.width, config.stride, 1));
      add(2, conv3x3(config.width, config.outputs, 1, config.dilation));
    }
    if (config.has_downsample) {
      downsample_ = register_module(
          "downsample",
          torch::nn::Sequential(
              conv1x1(config.inputs, config.outputs, config.stride),
              SyncBatchNorm(config.outputs)));
    }
  }

  Tensor forward(const Tensor& x) {
    Tensor y = x;
    for (size_t i = 0; i < convs_.size(); ++i) {
      y = norms_[i]->forward(convs_[i]->forward(y));
      if (i + 1 < convs_.size()) y.relu_();
    }
    return y.add_(downsample_ ? downsample_->forward(x) : x).relu_();
  }

 private:
  void add(int number, const torch::nn::Conv2d& conv) {
    convs_.push_back(register_module(fmt::format("conv{}", number), conv));
    norms_.push_back(
        register_module(fmt::format("bn{}", number),
                        SyncBatchNorm(conv->options.out_channels())));
  }

  std::vector<torch::nn::Conv2d> convs_;
  std::vector<SyncBatchNorm> norms_;
  torch::nn::Sequential downsample_{nullptr};
};

torch::nn::Sequential make_layer(const std::vector<BlockConfig>& blocks) {
  torch::nn::Sequential layer;
  for (const BlockConfig& block : blocks) {
    layer->push_back(std::make_shared<ResidualBlock>(block));
  }
  return layer;
}

// The first convolution of a block has the stride, so all of it runs at the
// smaller size.
double block_products(const BlockConfig& block, double pixels) {
  const auto inputs = static_cast<double>(block.inputs);
  const auto width = static_cast<double>(block.width);
  const auto outputs = static_cast<double>(block.outputs);
  const double down = block.has_downsample ? inputs * outputs : 0;
  const double per_pixel =
      block.is_bottleneck ? inputs * width + 9 * width * width + width * outputs
                          : 9 * inputs * width + 9 * width * outputs;
  return (per_pixel + down) * pixels;
}

}  // namespace

TrunkWidths trunk_widths(int64_t layers) {
  return depth_of(layers).has_bottlenecks
             ? TrunkWidths{.low = 256, .high = 2048}
             : TrunkWidths{.low = 64, .high = 512};
}

TrunkSides trunk_sides(int64_t image_side) {
  TrunkSides sides;
  sides.stem = (image_side - 1) / 2 + 1;
  sides.low = sides.stem / 2 + 1;  // rounded up
  sides.high = (sides.low - 1) / 2 + 1;
  return sides;
}

double trunk_products(int64_t layers, int64_t image_side) {
  const TrunkSides sides = trunk_sides(image_side);
  const auto area = [](int64_t side) {
    return static_cast<double>(side) * static_cast<double>(side);
  };
  double products = 3 * 49 * static_cast<double>(kStemWidth) * area(sides.stem);
  const auto plan = plan_blocks(depth_of(layers));
  for (size_t layer = 0; layer < plan.size(); ++layer) {
    for (const BlockConfig& block : plan[layer]) {
      products +=
          block_products(block, area(layer == 0 ? sides.low : sides.high));
    }
  }
  return products;
}

DilatedResNet::DilatedResNet(int64_t layers) {
  const auto plan = plan_blocks(depth_of(layers));
  conv1_ = register_module(
      "conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, kStemWidth, 7)
                                     .stride(2)
                                     .padding(3)
                                     .bias(false)));
  bn1_ = register_module("bn1", SyncBatchNorm(kStemWidth));
  layer1_ = register_module("layer1", make_layer(plan[0]));
  layer2_ = register_module("layer2", make_layer(plan[1]));
  layer3_ = register_module("layer3", make_layer(plan[2]));
  layer4_ = register_module("layer4", make_layer(plan[3]));
}

TrunkFeatures DilatedResNet::trunk(const Tensor& images) {
  const Tensor stem = bn1_->forward(conv1_->forward(images)).relu_();
  const Tensor pooled = at::max_pool2d(stem, {3, 3}, {2, 2}, {1, 1}, {1, 1},
                                       /*ceil_mode=*/true);
  TrunkFeatures features;
  features.low = layer1_->forward(pooled);
  features.high =
      layer4_->forward(layer3_->forward(layer2_->forward(features.low)));
  return features;
}

}  // namespace lockstep::deeplab
