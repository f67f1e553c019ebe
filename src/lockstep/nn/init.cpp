#include "lockstep/nn/init.h"

#include <torch/torch.h>

namespace lockstep {

void reset_linear_layers(torch::nn::Module& module) {
  for (const auto& child : module.modules(/*include_self=*/false)) {
    if (auto* linear = child->as<torch::nn::LinearImpl>()) {
      torch::nn::init::xavier_uniform_(linear->weight);
      torch::nn::init::zeros_(linear->bias);
    }
  }
}

}  // namespace lockstep
