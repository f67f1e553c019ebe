// Atrous spatial pyramid pooling: four dilated convolutions and global pooling.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/sync_batch_norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::deeplab {

enum class AsppEnd {
  kLogits,    // `conv1`, `bn1`
  kFeatures,  // `prject`: convolution, norm, ReLU, dropout 0.5
};

struct AsppConfig {
  int64_t inputs = 2048;
  int64_t outputs = 21;
  // The first branch is a 1x1 convolution, which does not dilate.
  std::array<int64_t, 3> dilations = {12, 18, 24};
  AsppEnd end = AsppEnd::kLogits;
};

// Multiplications of one forward pass over so many pixels.
double aspp_products(const AsppConfig& config, double pixels);

class Aspp : public torch::nn::Module {
 public:
  explicit Aspp(const AsppConfig& config);
  // [B, inputs, H, W] -> [B, outputs, H, W]
  at::Tensor forward(const at::Tensor& x);

 private:
  class Branch;

  std::vector<std::shared_ptr<Branch>> branches_;
  torch::nn::Sequential global_{nullptr};
  torch::nn::Conv2d conv1_{nullptr};
  SyncBatchNorm bn1_{nullptr};
  torch::nn::Sequential project_{nullptr};
};

}  // namespace lockstep::deeplab
