#include "lockstep/nn/norm.h"

#include <ATen/ATen.h>

#include <cmath>

namespace lockstep {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain,
                    double min_length) {
  const at::Tensor length =
      at::linalg_vector_norm(x, 2, at::IntArrayRef{-1}, /*keepdim=*/true);
  const double root = std::sqrt(static_cast<double>(x.size(-1)));
  // The factor is small when gain is one number: x is read once.
  return x * (root / length.clamp_min(min_length) * gain);
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
