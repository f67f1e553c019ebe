#include "lockstep/nn/conv.h"

#include <ATen/ATen.h>

#include "lockstep/nn/init.h"
#include "lockstep/nn/weights.h"

namespace lockstep::nn {

Conv2dImpl::Conv2dImpl(const ConvConfig& config) : config_(config) {
  weight = register_parameter(
      "weight",
      new_weight({config.out, config.in, config.kernel, config.kernel}));
  if (config.bias == Bias::kYes) {
    bias = register_parameter("bias", new_weight({config.out}));
  }
  if (!UninitialisedWeights::in_scope()) init_uniform(weight, bias);
}

at::Tensor Conv2dImpl::forward(const at::Tensor& x) {
  return at::conv2d(x, weight, bias, config_.stride, config_.padding);
}

ConvTranspose2dImpl::ConvTranspose2dImpl(const ConvConfig& config)
    : config_(config) {
  weight = register_parameter(
      "weight",
      new_weight({config.in, config.out, config.kernel, config.kernel}));
  if (config.bias == Bias::kYes) {
    bias = register_parameter("bias", new_weight({config.out}));
  }
  if (!UninitialisedWeights::in_scope()) init_uniform(weight, bias);
}

at::Tensor ConvTranspose2dImpl::forward(const at::Tensor& x) {
  return at::conv_transpose2d(x, weight, bias, config_.stride, config_.padding);
}

}  // namespace lockstep::nn
