// Parameters whose values are loaded later, from a file.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

// While one exists, layers constructed on this thread have parameters without
// memory: one number, expanded to the parameter's shape. A model with billions
// of parameters is built instantly, and its weights are loaded from the file
// straight to their device and type, by parameter.set_data(tensor) or
// materialize(). The same as `with torch.device("meta")` in Python.
class UninitialisedWeights {
 public:
  UninitialisedWeights();
  ~UninitialisedWeights();
  UninitialisedWeights(const UninitialisedWeights&) = delete;
  UninitialisedWeights& operator=(const UninitialisedWeights&) = delete;

  static bool in_scope();

 private:
  bool outer_;
};

// A tensor for register_parameter(): uninitialised, or without memory inside
// such a scope.
at::Tensor new_weight(at::IntArrayRef shape);

// Allocates memory for every parameter and buffer that has none. Values are
// arbitrary; device and dtype are those of the options.
void materialize(torch::nn::Module& module, const at::TensorOptions& options);

// Initial weights for a model without a file, the same on every machine and
// device: 0 for parameters called bias, 1 for other 1-D parameters, N(0, 1 /
// fan_in) for the rest. All parameters must have memory.
void fill_randomly(torch::nn::Module& module, uint64_t seed);

}  // namespace lockstep::nn
