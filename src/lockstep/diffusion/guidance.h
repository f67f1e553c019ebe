// Classifier-free guidance.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "lockstep/diffusion/ode.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::diffusion {

// The velocity of every row: z [B, ...], times [B] of z's type, labels int64
// [B] -> shaped as z. The result may have a narrower type.
using LabelledVelocity = std::function<at::Tensor(
    const at::Tensor& z, const at::Tensor& times, const at::Tensor& labels)>;

// Times with guidance; at others its weight is 1. Default: all.
struct GuidanceInterval {
  double low = 0;  // 0: no limit, includes time 0.
  double high = std::numeric_limits<double>::infinity();
};

// t < high and (low == 0 or t > low)
bool is_guided(const GuidanceInterval& interval, double t);

struct GuidanceConfig {
  at::Tensor labels = {};  // int64 [B].
  int64_t no_label = 0;
  // Weight, [B], in z's type: 1 is conditional only, 0 unconditional.
  at::Tensor weights = {};
  GuidanceInterval interval = {};
};

// uncond + weight * (cond - uncond), both from one batch of twice the size.
// Outside the interval the weight is 1, so only cond is computed.
Velocity guided_velocity(LabelledVelocity velocity,
                         const GuidanceConfig& config);

}  // namespace lockstep::diffusion
