// DINOv2's vision transformer with registers, which embeds the patches of each
// image for VGGT.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "lockstep/models/vggt/block.h"
#include "lockstep/models/vggt/config.h"
#include "lockstep/models/vggt/tables.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::vggt {

class VggtVit : public torch::nn::Module {
 public:
  explicit VggtVit(const VggtConfig& config);

  // Normalised images [F, 3, H, W] -> tokens of their patches, row by row,
  // [F, N, width], in float32 or more.
  at::Tensor forward(const at::Tensor& images);

 private:
  class PatchEmbed;

  // [1, 1 + N, width]: position embeddings of the class token and the patches.
  at::Tensor positions_of(const GridSize& grid) const;

  VggtConfig config_;
  at::Tensor cls_token_;
  at::Tensor pos_embed_;
  at::Tensor register_tokens_;
  std::shared_ptr<PatchEmbed> patch_embed_;
  std::vector<std::shared_ptr<VggtBlock>> blocks_;
  nn::LayerNorm norm_{nullptr};
};

}  // namespace lockstep::vggt
