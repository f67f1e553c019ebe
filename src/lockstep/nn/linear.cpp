#include "lockstep/nn/linear.h"

#include <ATen/ops/linear.h>

namespace lockstep {

at::Tensor apply_linear(const torch::nn::Linear& layer, const at::Tensor& x) {
  return at::linear(x, layer->weight, layer->bias);
}

}  // namespace lockstep
