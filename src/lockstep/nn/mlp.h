// Feed-forward block of a transformer.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/kernels/activation_request.h"
#include "lockstep/nn/linear.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

using Activation = kernels::ActivationKind;

// Names of the layers in checkpoints.
struct MlpNames {
  std::string first = "fc1";
  std::string last = "fc2";
  // SwiGLU: the layer of b. Empty: the first layer computes a and b, in this
  // order.
  std::string up = {};
};

struct MlpConfig {
  int64_t width = 384;
  int64_t hidden = 1536;
  std::optional<int64_t> out = {};  // Unset: the width.
  Activation activation = Activation::kGelu;
  double dropout = 0;  // Before the last layer.
  Bias bias = Bias::kYes;
  MlpNames names = {};
};

// Linear, activation, linear.
class Mlp : public torch::nn::Module {
 public:
  explicit Mlp(const MlpConfig& config);

  at::Tensor forward(const at::Tensor& x);

  // See LinearImpl.
  kernels::ResidualBranch forward_to_residual(const at::Tensor& x);

 private:
  at::Tensor hidden(const at::Tensor& x);
  at::Tensor activated(const at::Tensor& x);

  MlpConfig config_;
  Linear first_{nullptr};
  Linear up_{nullptr};
  Linear last_{nullptr};
};

}  // namespace lockstep::nn
