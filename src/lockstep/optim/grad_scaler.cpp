#include "lockstep/optim/grad_scaler.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::optim {

GradScaler::GradScaler(const GradScalerConfig& config, c10::Device device)
    : config_(config) {
  if (!(config.init_scale > 0) || !(config.growth_factor > 1) ||
      !(config.backoff_factor > 0) || !(config.backoff_factor < 1) ||
      config.growth_interval < 1) {
    throw ConfigError(fmt::format(
        "loss scale {} growing by {} every {} updates and shrinking by {}: the "
        "scale must be above 0, growth above 1, the interval at least 1 and "
        "the backoff between 0 and 1",
        config.init_scale, config.growth_factor, config.growth_interval,
        config.backoff_factor));
  }
  const auto on_device = at::TensorOptions().device(device);
  scale_ = at::full({}, config.init_scale, on_device.dtype(at::kFloat));
  growth_tracker_ = at::zeros({}, on_device.dtype(at::kInt));
}

at::Tensor GradScaler::scale(const at::Tensor& loss) const {
  return loss * scale_.to(loss.device(), /*non_blocking=*/true);
}

at::Tensor GradScaler::inverse_scale() const {
  return scale_.to(at::kDouble).reciprocal().to(at::kFloat);
}

void GradScaler::update(const at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  at::_amp_update_scale_(scale_, growth_tracker_,
                         found_inf.to(scale_.device(), /*non_blocking=*/true),
                         config_.growth_factor, config_.backoff_factor,
                         config_.growth_interval);
}

GradScalerState GradScaler::state() const {
  return {.scale = scale_,
          .growth_tracker = growth_tracker_,
          .growth_factor = config_.growth_factor,
          .backoff_factor = config_.backoff_factor,
          .growth_interval = config_.growth_interval};
}

void GradScaler::load(const GradScalerState& state) {
  for (const at::Tensor& tensor : {state.scale, state.growth_tracker}) {
    if (tensor.defined() && tensor.numel() == 1) continue;
    throw ConfigError(
        "the saved loss scale is not one number and one counter; resume from "
        "another checkpoint");
  }
  const at::NoGradGuard no_grad;
  scale_.copy_(state.scale.reshape({}));
  growth_tracker_.copy_(state.growth_tracker.reshape({}));
}

}  // namespace lockstep::optim
