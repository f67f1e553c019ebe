// Initial weights of layers.
#pragma once

#include <torch/nn/module.h>

#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

// PyTorch's default for linear and convolutional layers; bias may be undefined.
void init_uniform(const at::Tensor& weight, const at::Tensor& bias);

// Xavier uniform weights and zero bias for all Linear layers inside the module.
void reset_linear_layers(torch::nn::Module& module);

}  // namespace lockstep::nn
