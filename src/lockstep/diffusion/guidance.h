// Classifier-free guidance: further away from what no label would give.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "lockstep/diffusion/ode.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::diffusion {

// The velocity of every row: z [B, ...], times [B] of z's type, labels int64
// [B] -> shaped as z. May answer in fewer bits.
using LabelledVelocity = std::function<at::Tensor(
    const at::Tensor& z, const at::Tensor& times, const at::Tensor& labels)>;

// The times of guidance; at others the labels alone are followed. Default: all.
struct GuidanceInterval {
  double low = 0;  // 0: no limit, 0 itself belongs to it.
  double high = std::numeric_limits<double>::infinity();
};

// t < high and (low == 0 or t > low)
bool is_guided(const GuidanceInterval& interval, double t);

struct GuidanceConfig {
  at::Tensor labels = {};  // int64 [B].
  int64_t no_label = 0;
  // 1 follows the label alone, 0 none, more than 1 exaggerates. [B], z's type.
  at::Tensor weights = {};
  GuidanceInterval interval = {};
};

// uncond + weight * (cond - uncond), both from one batch of twice the size. At
// times outside the interval the weight is 1, which cond is up to rounding:
// only that half is computed there.
Velocity guided_velocity(LabelledVelocity velocity,
                         const GuidanceConfig& config);

}  // namespace lockstep::diffusion
