// Between backward and the optimizer's step: unscale, measure, clip.
#pragma once

#include <optional>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::optim {

// Both 0-dim float32 on the device of the first gradient.
struct GradientReport {
  at::Tensor norm;       // of all gradients together: unscaled, not yet clipped
  at::Tensor found_inf;  // 1 when a gradient or the norm is not finite, else 0
};

// Changes the gradients of the parameters that have one, after they were
// averaged over the ranks. `inverse_scale` (0-dim, float32 or for
// gradients of float64 that) multiplies them: 1 over the loss scale times
// whatever else. `max_norm` 0 means no clipping;
// otherwise they are clipped with the bits of Python's clip_grad_norm_. Where
// found_inf is 1 the gradients hold nothing of use: hand it to
// Optimizer::step(). Nothing is read back from the device.
GradientReport prepare_gradients(const std::vector<at::Tensor>& parameters,
                                 const std::optional<at::Tensor>& inverse_scale,
                                 double max_norm);

// Its parts, for gradients of one type on one device.
void unscale_gradients(const std::vector<at::Tensor>& gradients,
                       const at::Tensor& inverse_scale);
void clip_gradients(const std::vector<at::Tensor>& gradients,
                    const at::Tensor& norm, double max_norm);
// `norm` is that of all gradients.
GradientReport report_norm(const at::Tensor& norm);

}  // namespace lockstep::optim
