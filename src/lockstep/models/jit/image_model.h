// JiT for images: a transformer over patches of a noisy image that predicts
// the clean one (arXiv 2511.13720).
//
// Parameters have the names, shapes and order of the paper's code, whose state
// dicts it reads and writes. It has a bottleneck in the patch embedding, fixed
// and rotary position embeddings, QK-norm, and class tokens that join the
// patches at a later block.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "lockstep/models/jit/variant.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::jit {

struct JitImageConfig {
  int64_t image_size = 256;
  int64_t patch = 16;
  int64_t channels = 3;
  int64_t width = 768;
  int64_t depth = 12;
  int64_t num_heads = 12;
  int64_t num_classes = 1000;
  int64_t bottleneck = 128;
  // Tokens of the class, which join before block number context_start.
  int64_t num_context = 32;
  int64_t context_start = 4;  // Below the depth.
  // In the middle half of the blocks only.
  double attn_dropout = 0;
  double proj_dropout = 0;
};

// Sizes by name; the rest is as in the paper.
JitImageConfig jit_image_config(const JitVariant& variant, int64_t image_size,
                                int64_t num_classes);

// Throws ConfigError, which names the recipe's flags, for incompatible sizes.
void check_jit_image_config(const JitImageConfig& config);

// Multiplications and additions of one forward pass of one image.
double jit_image_forward_flops(const JitImageConfig& config);

class JitImage : public torch::nn::Module {
 public:
  explicit JitImage(const JitImageConfig& config);

  // images [B, C, S, S], times [B] in [0, 1], labels int64 [B], of which
  // num_classes stands for "no class" -> clean images, shaped alike.
  at::Tensor forward(const at::Tensor& images, const at::Tensor& times,
                     const at::Tensor& labels);

  const JitImageConfig& config() const { return config_; }
  at::ScalarType dtype() const;

 private:
  class PatchEmbedder;
  class Transformer;

  JitImageConfig config_;
  std::shared_ptr<Transformer> transformer_;  // "net" in checkpoints.
};

}  // namespace lockstep::jit
