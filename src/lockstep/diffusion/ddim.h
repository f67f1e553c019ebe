// Deterministic DDIM for models that predict the clean image.
//
// Time counts from 0, clean, to 999: x_t = a x + (1 - a) noise with
// a = 1 - t / 1000.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::diffusion {

constexpr int64_t kDiffusionTimes = 1000;

// The coefficient a at time t.
double clean_part(int64_t t);

// From 999 down to 0 in num_steps steps, as even as whole numbers allow: at
// most num_steps + 1 different times. Throws ConfigError unless 0 < num_steps.
std::vector<int64_t> ddim_times(int64_t num_steps);

// x_t and its time -> the clean image.
using Denoiser = std::function<at::Tensor(const at::Tensor&, int64_t)>;

// Called with x_t and its time before each prediction; returns its replacement.
using Correction = std::function<at::Tensor(const at::Tensor&, int64_t)>;

struct DdimConfig {
  int64_t num_steps = 20;
  Correction correct = {};  // Unset: none.
};

// Denoises an image: each step computes a' x + (1 - a') n from the prediction x
// and the noise n that it implies in x_t. The last step returns the prediction.
at::Tensor sample_ddim(const Denoiser& denoise, const at::Tensor& noise,
                       const DdimConfig& config);

}  // namespace lockstep::diffusion
