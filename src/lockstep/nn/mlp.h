// What a token does by itself: two linear layers with a bend between them.
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

struct SwiGluConfig {
  int64_t width = 384;
  int64_t hidden = 1024;
  double dropout = 0;  // Of what the second layer gets.
};

// w3(silu(a) * b), a and b the halves of w12(x) in this order.
class SwiGlu : public torch::nn::Module {
 public:
  explicit SwiGlu(const SwiGluConfig& config);

  at::Tensor forward(const at::Tensor& tokens);

 private:
  SwiGluConfig config_;
  torch::nn::Linear w12_{nullptr};
  torch::nn::Linear w3_{nullptr};
};

}  // namespace lockstep
