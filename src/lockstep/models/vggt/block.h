// The transformer blocks that VGGT is made of.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/kernels/qk_norm_rope.h"
#include "lockstep/nn/bare.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep {

struct VggtBlockConfig {
  int64_t width = 1024;
  int64_t num_heads = 16;
  double norm_eps = 1e-5;
  // Queries and keys are normalised, each head by itself, and turned.
  bool has_places = false;
};

class VggtAttention : public torch::nn::Module {
 public:
  explicit VggtAttention(const VggtBlockConfig& config);

  // [B, N, width] -> the same. With rotations, of P tokens, N is a multiple of
  // P: tokens of several images, one after the other.
  at::Tensor forward(const at::Tensor& tokens, const RopeTable* rotations);

 private:
  VggtBlockConfig config_;
  std::shared_ptr<BareLinear> qkv_;
  std::shared_ptr<BareLayerNorm> q_norm_;
  std::shared_ptr<BareLayerNorm> k_norm_;
  std::shared_ptr<BareLinear> proj_;
};

struct VggtMlpConfig {
  int64_t in = 1024;
  int64_t hidden = 4096;
  int64_t out = 1024;
};

class VggtMlp : public torch::nn::Module {
 public:
  explicit VggtMlp(const VggtMlpConfig& config);

  at::Tensor forward(const at::Tensor& x);

 private:
  std::shared_ptr<BareLinear> fc1_;
  std::shared_ptr<BareLinear> fc2_;
};

// Pre-norm, each branch scaled by a number per channel. Branches compute in the
// type of the weights; tokens that pass by keep float32, or more: 72 blocks
// that round to bfloat16 are four times as far from the truth.
class VggtBlock : public torch::nn::Module {
 public:
  explicit VggtBlock(const VggtBlockConfig& config);

  at::Tensor forward(const at::Tensor& tokens,
                     const RopeTable* rotations = nullptr);

 private:
  class LayerScale;
  std::shared_ptr<BareLayerNorm> norm1_;
  std::shared_ptr<VggtAttention> attn_;
  std::shared_ptr<LayerScale> ls1_;
  std::shared_ptr<BareLayerNorm> norm2_;
  std::shared_ptr<VggtMlp> mlp_;
  std::shared_ptr<LayerScale> ls2_;
};

// `count` of them in a list called `name` of the module.
std::vector<std::shared_ptr<VggtBlock>> register_blocks(
    torch::nn::Module& module, const std::string& name, int64_t count,
    const VggtBlockConfig& config);

}  // namespace lockstep
