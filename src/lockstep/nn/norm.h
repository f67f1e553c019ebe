// Normalisation of tokens, and what conditions do to them.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

// x / ||x|| * sqrt(D) * gain over the last dimension, of size D; vectors not
// longer than about min_length become shorter. gain: one number, or D of them.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain,
                    double min_length = 1e-12);

// x / sqrt(mean(x^2) + eps) * weight over the last dimension; the weight has
// its size. Computed and answered in the weight's type, also of an x with fewer
// bits.
class RmsNorm : public torch::nn::Module {
 public:
  explicit RmsNorm(int64_t size, double eps = 1e-6);

  at::Tensor forward(const at::Tensor& x);

 private:
  double eps_;
  at::Tensor weight_;
};

// Shift and scale of every token of a sample: x [B, N, D], others [B, D].
struct Modulation {
  at::Tensor shift = {};
  at::Tensor scale = {};
};

// x * (1 + scale) + shift
at::Tensor modulate(const at::Tensor& x, const Modulation& modulation);

}  // namespace lockstep
