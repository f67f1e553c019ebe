// The transformer blocks that VGGT is made of.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/nn/attention.h"
#include "lockstep/nn/mlp.h"
#include "lockstep/nn/norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::vggt {

struct VggtBlockConfig {
  int64_t width = 1024;
  int64_t num_heads = 16;
  double norm_eps = 1e-5;
  bool has_rope = false;  // With QK-norm.
};

// Pre-norm with layer scale. Branches compute in the type of the weights; the
// residual stream is float32 or wider: rounded to bfloat16, the error after 72
// blocks is four times as large.
class VggtBlock : public torch::nn::Module {
 public:
  explicit VggtBlock(const VggtBlockConfig& config);

  at::Tensor forward(const at::Tensor& tokens,
                     const kernels::RopeTable* rope = nullptr);

 private:
  class LayerScale;
  nn::LayerNorm norm1_{nullptr};
  std::shared_ptr<nn::Attention> attn_;
  std::shared_ptr<LayerScale> ls1_;
  nn::LayerNorm norm2_{nullptr};
  std::shared_ptr<nn::Mlp> mlp_;
  std::shared_ptr<LayerScale> ls2_;
};

// Registers `count` blocks as a list `name` of the module.
std::vector<std::shared_ptr<VggtBlock>> register_blocks(
    torch::nn::Module& module, const std::string& name, int64_t count,
    const VggtBlockConfig& config);

}  // namespace lockstep::vggt
