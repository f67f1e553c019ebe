// Which algorithms compute the products of a training on a GPU: rank 0 times
// those of the first step, the others follow it.
#pragma once

#include <string>

#include "lockstep/kernels/working_weights.h"
#include "lockstep/world.h"

namespace lockstep::engine {

class ProductChoice {
 public:
  // Until share() other ranks take cuBLASLt's first suggestions.
  ProductChoice(const World& world, kernels::WorkingWeights& weights);

  // Between the first step and the second; later calls do nothing. A
  // collective.
  void share();

  // For checkpoints: what was timed, on which GPU.
  std::string text() const;
  void take(const std::string& text);

 private:
  World world_;
  kernels::WorkingWeights& weights_;
  bool is_shared_ = false;
};

}  // namespace lockstep::engine
