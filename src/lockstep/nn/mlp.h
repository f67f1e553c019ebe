// Two linear layers with a GELU between them.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

struct MlpConfig {
  int64_t width = 384;  // Of tokens that come and go.
  int64_t hidden = 1536;
};

// GELU in its tanh form. Parameters are named as in timm: fc1, fc2.
class Mlp : public torch::nn::Module {
 public:
  explicit Mlp(const MlpConfig& config);

  at::Tensor forward(const at::Tensor& tokens);

 private:
  torch::nn::Linear fc1_{nullptr};
  torch::nn::Linear fc2_{nullptr};
};

}  // namespace lockstep
