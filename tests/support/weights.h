// Parameters of models.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

namespace lockstep::testing {

inline int64_t num_trainable(const torch::nn::Module& model) {
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) {
    if (parameter.requires_grad()) count += parameter.numel();
  }
  return count;
}

using Shapes = std::map<std::string, std::vector<int64_t>>;

// Shapes of the parameters by name.
inline Shapes shapes_of(const torch::nn::Module& model) {
  Shapes shapes;
  for (const auto& item : model.named_parameters()) {
    shapes[item.key()] = item.value().sizes().vec();
  }
  return shapes;
}

// All weights from N(0, deviation): none is 0 as after initialisation.
inline void set_all_random(torch::nn::Module& model, double deviation) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) parameter.normal_(0, deviation);
}

}  // namespace lockstep::testing
