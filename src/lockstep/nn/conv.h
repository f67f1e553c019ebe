// 2-D convolutions.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "lockstep/nn/linear.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

struct ConvConfig {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  Bias bias = Bias::kYes;
};

// torch::nn::Conv2d whose weights may be loaded later (weights.h).
class Conv2dImpl : public torch::nn::Module {
 public:
  explicit Conv2dImpl(const ConvConfig& config);

  at::Tensor forward(const at::Tensor& x);

  at::Tensor weight;  // [out, in, kernel, kernel]
  at::Tensor bias;

 private:
  ConvConfig config_;
};
TORCH_MODULE(Conv2d);

class ConvTranspose2dImpl : public torch::nn::Module {
 public:
  explicit ConvTranspose2dImpl(const ConvConfig& config);

  at::Tensor forward(const at::Tensor& x);

  at::Tensor weight;  // [in, out, kernel, kernel]
  at::Tensor bias;

 private:
  ConvConfig config_;
};
TORCH_MODULE(ConvTranspose2d);

}  // namespace lockstep::nn
