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

// The residual stream between two norms: x [B, N, D], and the branch that the
// next norm adds to it.
struct ResidualStream {
  at::Tensor x = {};
  kernels::ResidualBranch branch = {};
};

// x + branch
at::Tensor joined(const ResidualStream& stream);

// Tokens begin to end - 1.
ResidualStream slice_tokens(const ResidualStream& stream, int64_t begin,
                            int64_t end);

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

  // condition [B, D]
  ResidualStream forward(const ResidualStream& stream,
                         const at::Tensor& condition,
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

  // condition [B, D] -> [B, N, out]
  at::Tensor forward(const ResidualStream& stream, const at::Tensor& condition);

 private:
  ModulationOrder order_;
  RmsNorm norm_{nullptr};
  Linear linear_{nullptr};
  torch::nn::Sequential modulation_{nullptr};
};

}  // namespace lockstep::nn
