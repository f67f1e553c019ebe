// A VGGT in which every branch matters: no weight begins near zero or one.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <memory>

#include "lockstep/models/vggt/vggt.h"
#include "lockstep/nn/weights.h"

namespace lockstep::testing {

inline std::shared_ptr<vggt::Vggt> random_vggt(const vggt::VggtConfig& config) {
  auto model = std::make_shared<vggt::Vggt>(config);
  nn::materialize(*model, at::TensorOptions());
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& value : model->parameters()) {
    const double spread =
        value.dim() > 1 ? 1 / std::sqrt(static_cast<double>(value[0].numel()))
                        : 0.5;
    value.copy_(spread * torch::randn(value.sizes()));
  }
  return model;
}

}  // namespace lockstep::testing
