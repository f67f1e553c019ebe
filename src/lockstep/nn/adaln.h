// Transformer blocks with adaptive layer norm (adaLN-Zero, arXiv 2212.09748):
// a vector per sample shifts, scales and gates its tokens.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>

#include <cstdint>
#include <memory>

#include "lockstep/nn/attention.h"
#include "lockstep/nn/mlp.h"
#include "lockstep/nn/norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

// Modulation of all tokens of a sample, [B, D] each.
struct Modulation {
  at::Tensor shift = {};
  at::Tensor scale = {};
};

// x * (1 + scale) + shift; x [B, N, D]
at::Tensor modulate(const at::Tensor& x, const Modulation& modulation);

struct AdaLnBlockConfig {
  RmsNormConfig norm = {};
  AttentionConfig attention = {};
  MlpConfig mlp = {};
};

// Parameters: norm1, attn, norm2, mlp, adaLN_modulation.1. Linear layers are
// initialised Xavier uniform, the modulation with zeros: a new block is the
// identity.
class AdaLnBlock : public torch::nn::Module {
 public:
  explicit AdaLnBlock(const AdaLnBlockConfig& config);

  // x [B, N, D], condition [B, D]
  at::Tensor forward(const at::Tensor& x, const at::Tensor& condition,
                     const kernels::RopeTable* rope = nullptr);

 private:
  RmsNorm norm1_{nullptr};
  std::shared_ptr<Attention> attn_;
  RmsNorm norm2_{nullptr};
  std::shared_ptr<Mlp> mlp_;
  torch::nn::Sequential modulation_{nullptr};
};

// Order of the two halves of the modulation's output.
enum class ModulationOrder { kShiftScale, kScaleShift };

struct AdaLnFinalLayerConfig {
  RmsNormConfig norm = {};
  int64_t out = 12;
  ModulationOrder order = ModulationOrder::kShiftScale;
};

// Parameters: norm_final, linear, adaLN_modulation.1; linear layers are
// initialised with zeros.
class AdaLnFinalLayer : public torch::nn::Module {
 public:
  explicit AdaLnFinalLayer(const AdaLnFinalLayerConfig& config);

  // x [B, N, D], condition [B, D] -> [B, N, out]
  at::Tensor forward(const at::Tensor& x, const at::Tensor& condition);

 private:
  ModulationOrder order_;
  RmsNorm norm_{nullptr};
  Linear linear_{nullptr};
  torch::nn::Sequential modulation_{nullptr};
};

}  // namespace lockstep::nn
