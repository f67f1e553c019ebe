#include "lockstep/nn/norm.h"

#include <ATen/ATen.h>

namespace lockstep {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain,
                    double min_length) {
  const int64_t size = x.size(-1);
  // The fused kernel adds under the root where the definition takes the
  // larger: the same but for lengths near min_length.
  return at::rms_norm(x, size, gain.expand({size}),
                      min_length * min_length / static_cast<double>(size));
}

RmsNorm::RmsNorm(int64_t size, double eps) : eps_(eps) {
  weight_ = register_parameter("weight", at::ones({size}));
}

at::Tensor RmsNorm::forward(const at::Tensor& x) {
  // The fused kernel takes one type for both.
  return at::rms_norm(x.to(weight_.scalar_type()), weight_.sizes(), weight_,
                      eps_);
}

at::Tensor modulate(const at::Tensor& x, const Modulation& modulation) {
  return x * (1 + modulation.scale.unsqueeze(1)) +
         modulation.shift.unsqueeze(1);
}

}  // namespace lockstep
