// LoRM: the loss by which features of foreground pixels are explained by
// similar pixels of the same image (AAAI 2024, "Scribble Hides Class").
//
// Attention is by the cosine of query and key, over heads as wide as the
// features. It is computed for rows of foreground pixels only, a block of rows
// at a time, and again in backward: no matrix of pixels by pixels is kept.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>

#include <cstdint>

#include "lockstep/models/deeplab/losses.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::deeplab {

struct LormConfig {
  int64_t width = 2048;
  // Entries of the attention matrix in memory at a time.
  int64_t block_entries = int64_t{1} << 22;
};

// Multiplications of one forward pass when all pixels are foreground.
double lorm_products(int64_t width, double pixels);

class Lorm : public torch::nn::Module {
 public:
  explicit Lorm(const LormConfig& config);

  // features [B, width, h, w]; classes uint8 [B, S, S], 0 and 255 for
  // background, not changed. The sum of (x - gamma A x)^2 over all features,
  // where A x counts for foreground pixels only, and how many of these squares
  // are not 0. Waits for the device, to learn the numbers of foreground
  // pixels.
  LossSum forward(const at::Tensor& features, const at::Tensor& classes);

 private:
  LormConfig config_;
  at::Tensor gamma_;
  torch::nn::Conv2d query_conv_{nullptr};
  torch::nn::Conv2d key_conv_{nullptr};
};

}  // namespace lockstep::deeplab
