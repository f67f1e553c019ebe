#include "lockstep/nn/norm.h"

#include <ATen/ATen.h>

#include "lockstep/nn/weights.h"

namespace lockstep::nn {

LayerNormImpl::LayerNormImpl(int64_t size, double eps)
    : norm_{.weight = register_parameter("weight", new_weight({size})),
            .bias = register_parameter("bias", new_weight({size})),
            .eps = eps} {
  if (UninitialisedWeights::in_scope()) return;
  const at::NoGradGuard no_grad;
  norm_.weight.fill_(1);
  norm_.bias.zero_();
}

at::Tensor LayerNormImpl::forward(const at::Tensor& x) {
  const at::ScalarType type = norm_.weight.scalar_type();
  if (at::promote_types(x.scalar_type(), type) == x.scalar_type()) {
    return kernels::norm_tokens(x, norm_);
  }
  // x is narrower only under autocast, which then chooses the type.
  return at::layer_norm(x, {x.size(-1)}, norm_.weight, norm_.bias, norm_.eps);
}

RmsNormImpl::RmsNormImpl(const RmsNormConfig& config) : eps_(config.eps) {
  weight_ = config.has_scalar_weight
                ? register_parameter("g", new_weight({1}))
                : register_parameter("weight", new_weight({config.size}));
  if (UninitialisedWeights::in_scope()) return;
  const at::NoGradGuard no_grad;
  weight_.fill_(1);
}

at::Tensor RmsNormImpl::forward(const at::Tensor& x) {
  return kernels::rms_norm(x, weight_, eps_);
}

}  // namespace lockstep::nn
