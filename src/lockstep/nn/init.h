// First weights of layers.
#pragma once

#include <torch/nn/module.h>

namespace lockstep {

// Xavier's uniform weights and no bias, for all linear layers inside the
// module: Linear's own are others.
void reset_linear_layers(torch::nn::Module& module);

}  // namespace lockstep
