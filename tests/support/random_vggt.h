// A VGGT in which every branch matters: no weight begins near zero or one.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <memory>

#include "lockstep/models/vggt/vggt.h"
#include "lockstep/nn/bare.h"

namespace lockstep::testing {

inline std::shared_ptr<Vggt> random_vggt(const VggtConfig& config) {
  auto net = std::make_shared<Vggt>(config);
  give_memory(*net, at::TensorOptions());
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& value : net->parameters()) {
    const double spread =
        value.dim() > 1 ? 1 / std::sqrt(static_cast<double>(value[0].numel()))
                        : 0.5;
    value.copy_(spread * torch::randn(value.sizes()));
  }
  return net;
}

}  // namespace lockstep::testing
