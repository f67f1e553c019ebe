#include "lockstep/nn/linear.h"

#include "lockstep/kernels/linear.h"
#include "lockstep/nn/init.h"
#include "lockstep/nn/weights.h"

namespace lockstep::nn {

LinearImpl::LinearImpl(int64_t in, int64_t out, Bias has_bias) {
  weight = register_parameter("weight", new_weight({out, in}));
  if (has_bias == Bias::kYes) {
    bias = register_parameter("bias", new_weight({out}));
  }
  if (!UninitialisedWeights::in_scope()) init_uniform(weight, bias);
}

at::Tensor LinearImpl::forward(const at::Tensor& x) {
  return kernels::linear(x, weight, bias);
}

kernels::ResidualBranch LinearImpl::forward_to_residual(const at::Tensor& x) {
  if (!x.is_cuda()) return {.out = forward(x)};
  return {.out = kernels::linear(x, weight), .bias = bias};
}

}  // namespace lockstep::nn
