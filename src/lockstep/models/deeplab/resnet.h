// The backbone of the recipe scribble: a ResNet for segmentation (arXiv
// 1512.03385, dilated as in DeepLab).
//
// Names of parameters are those of torchvision's ResNet, at the root of the
// module. It differs from torchvision where the published recipe does: the
// stride of a bottleneck lies on its first 1x1 convolution (as in Caffe), the
// last two layers dilate instead of striding, and the pooling rounds sizes up.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <cstdint>

#include "lockstep/sync_batch_norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::deeplab {

// Channels of the first and of the last layer's features.
struct TrunkWidths {
  int64_t low = 0;
  int64_t high = 0;
};

// Throws ConfigError unless layers is 18, 34, 50, 101 or 152.
TrunkWidths trunk_widths(int64_t layers);

// Pixels of one side of the features of an image.
struct TrunkSides {
  int64_t stem = 0;  // after the first convolution
  int64_t low = 0;   // a fourth
  int64_t high = 0;  // an eighth
};
TrunkSides trunk_sides(int64_t image_side);

// Multiplications of one forward pass of one square image.
double trunk_products(int64_t layers, int64_t image_side);

struct TrunkFeatures {
  at::Tensor low;   // [B, 256 or 64, H/4, W/4]
  at::Tensor high;  // [B, 2048 or 512, H/8, W/8]
};

class DilatedResNet : public torch::nn::Module {
 public:
  explicit DilatedResNet(int64_t layers);

  // images [B, 3, H, W]
  TrunkFeatures trunk(const at::Tensor& images);

 private:
  torch::nn::Conv2d conv1_{nullptr};
  SyncBatchNorm bn1_{nullptr};
  torch::nn::Sequential layer1_{nullptr};
  torch::nn::Sequential layer2_{nullptr};
  torch::nn::Sequential layer3_{nullptr};
  torch::nn::Sequential layer4_{nullptr};
};

}  // namespace lockstep::deeplab
