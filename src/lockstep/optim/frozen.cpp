#include "lockstep/optim/frozen.h"

#include <torch/nn/module.h>

#include <algorithm>

namespace lockstep::optim {
namespace {

bool is_frozen(const torch::nn::Module& module) {
  const auto parameters = module.parameters();
  return !parameters.empty() &&
         std::none_of(parameters.begin(), parameters.end(),
                      [](const auto& p) { return p.requires_grad(); });
}

void put_frozen_parts_in_eval_mode(torch::nn::Module& module) {
  if (is_frozen(module)) {
    module.eval();
    return;
  }
  for (const auto& child : module.children()) {
    put_frozen_parts_in_eval_mode(*child);
  }
}

}  // namespace

void freeze(torch::nn::Module& module) {
  for (auto& parameter : module.parameters()) parameter.requires_grad_(false);
  module.eval();
}

void train_except_frozen(torch::nn::Module& module) {
  module.train();
  put_frozen_parts_in_eval_mode(module);
}

}  // namespace lockstep::optim
