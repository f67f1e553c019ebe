// Cross-attention of a sentence to the geometry of the views.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include <cstdint>

#include "lockstep/nn/linear.h"
#include "lockstep/nn/norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::atlas {

struct FusionConfig {
  int64_t language_size = 4096;
  int64_t geometry_size = 512;
  int64_t width = 1024;
  int64_t num_heads = 16;
  int64_t num_layers = 4;
  double dropout = 0.1;
};

// Padding is masked in attention and in the mean, so results do not depend on
// the other sentences of the batch.
class MultimodalFusion : public torch::nn::Module {
 public:
  explicit MultimodalFusion(const FusionConfig& config);

  // language [B, T, language_size], mask bool [B, T] (true where a token is;
  // every row has one), geometry [B, S, geometry_size] -> [B, width]
  at::Tensor forward(const at::Tensor& language, const at::Tensor& mask,
                     const at::Tensor& geometry);

 private:
  torch::nn::Sequential lang_proj_{nullptr};
  torch::nn::Sequential geom_proj_{nullptr};
  torch::nn::ModuleList layers_{nullptr};
  nn::LayerNorm output_norm_{nullptr};
  nn::Linear output_proj_{nullptr};
};

}  // namespace lockstep::atlas
