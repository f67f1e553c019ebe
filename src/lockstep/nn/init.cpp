#include "lockstep/nn/init.h"

#include <torch/nn/init.h>

#include <cmath>

#include "lockstep/nn/linear.h"

namespace lockstep::nn {

void init_uniform(const at::Tensor& weight, const at::Tensor& bias) {
  torch::nn::init::kaiming_uniform_(weight, std::sqrt(5));
  if (!bias.defined()) return;
  const int64_t fan_in =
      std::get<0>(torch::nn::init::_calculate_fan_in_and_fan_out(weight));
  const double bound = 1 / std::sqrt(fan_in);
  torch::nn::init::uniform_(bias, -bound, bound);
}

void reset_linear_layers(torch::nn::Module& module) {
  for (const auto& child : module.modules(/*include_self=*/false)) {
    if (auto* linear = child->as<Linear>()) {
      torch::nn::init::xavier_uniform_(linear->weight);
      torch::nn::init::zeros_(linear->bias);
    }
  }
}

}  // namespace lockstep::nn
