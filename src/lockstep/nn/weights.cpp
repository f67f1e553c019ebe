#include "lockstep/nn/weights.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/random.h"

namespace lockstep::nn {
namespace {

// Aligned as the sections after it: mold 1.10 else lays the start of RELRO into
// an unmapped page when the code ends in the last 7 bytes of one, and the
// program does not load.
alignas(16) thread_local bool is_uninitialised = false;

bool has_no_memory(const at::Tensor& tensor) {
  return tensor.numel() > 1 &&
         tensor.storage().nbytes() < static_cast<size_t>(tensor.nbytes());
}

bool is_named_bias(const std::string& name) {
  const auto dot = name.rfind('.');
  return name.substr(dot == std::string::npos ? 0 : dot + 1) == "bias";
}

at::Tensor normal_draws(const at::Tensor& like, uint64_t seed,
                        uint64_t stream) {
  RandomStream random(seed, stream);
  const auto fan_in = static_cast<double>(like.numel() / like.size(0));
  const double deviation = 1 / std::sqrt(fan_in);
  std::vector<float> draws(static_cast<size_t>(like.numel()));
  for (float& draw : draws) {
    draw = static_cast<float>(deviation * random.normal());
  }
  return at::tensor(draws).view(like.sizes());
}

}  // namespace

UninitialisedWeights::UninitialisedWeights()
    : outer_(std::exchange(is_uninitialised, true)) {}

UninitialisedWeights::~UninitialisedWeights() { is_uninitialised = outer_; }

bool UninitialisedWeights::in_scope() { return is_uninitialised; }

at::Tensor new_weight(at::IntArrayRef shape) {
  return is_uninitialised ? at::zeros({1}).expand(shape) : at::empty(shape);
}

void materialize(torch::nn::Module& module, const at::TensorOptions& options) {
  const at::NoGradGuard no_grad;
  const auto allocate = [&](at::Tensor tensor) {
    // A scalar has memory from the start, but in the default dtype.
    if (has_no_memory(tensor) || tensor.numel() == 1) {
      tensor.set_data(at::empty(tensor.sizes(), options));
    }
  };
  for (const auto& parameter : module.parameters()) allocate(parameter);
  for (const auto& buffer : module.buffers()) allocate(buffer);
}

void fill_randomly(torch::nn::Module& module, uint64_t seed) {
  const at::NoGradGuard no_grad;
  uint64_t stream = 0;
  for (const auto& entry : module.named_parameters()) {
    at::Tensor parameter = entry.value();
    ++stream;
    if (is_named_bias(entry.key())) {
      parameter.zero_();
    } else if (parameter.dim() == 1) {
      parameter.fill_(1);
    } else {
      parameter.copy_(normal_draws(parameter, seed, stream));
    }
  }
}

}  // namespace lockstep::nn
