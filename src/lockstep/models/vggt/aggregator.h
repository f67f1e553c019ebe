// VGGT's aggregator: alternates attention within each image and attention over
// all images of a scene.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "lockstep/models/vggt/block.h"
#include "lockstep/models/vggt/config.h"
#include "lockstep/models/vggt/tables.h"
#include "lockstep/models/vggt/vit.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::vggt {

// Tokens [B, S, P, width] after the two blocks of a layer: the camera's, the
// registers, the patches. Heads see both, concatenated.
struct VggtLayer {
  at::Tensor frame = {};
  at::Tensor global = {};
};

class VggtAggregator : public torch::nn::Module {
 public:
  explicit VggtAggregator(const VggtConfig& config);

  // images [B, S, 3, H, W], 0 .. 1. Only the requested layers are kept.
  // Computes in the type of the weights; tokens are float32, or more.
  std::map<int64_t, VggtLayer> forward(const at::Tensor& images,
                                       const std::set<int64_t>& wanted);

  // Tokens of the patches before the first block, [B * S, N, width].
  at::Tensor patch_tokens(const at::Tensor& images);

 private:
  struct Colours {
    at::Tensor mean = {};
    at::Tensor deviation = {};
  };
  friend Colours moved_to(const Colours& colours,
                          const at::TensorOptions& options) {
    return {.mean = colours.mean.to(options),
            .deviation = colours.deviation.to(options)};
  }

  at::Tensor first_tokens(const at::Tensor& images);
  const kernels::RopeTable& rope_of(const GridSize& grid);
  at::ScalarType wide_type() const;

  VggtConfig config_;
  at::Tensor camera_token_;
  at::Tensor register_token_;
  std::shared_ptr<VggtVit> patch_embed_;
  std::vector<std::shared_ptr<VggtBlock>> frame_blocks_;
  std::vector<std::shared_ptr<VggtBlock>> global_blocks_;
  TablePerSize<kernels::RopeTable> ropes_;
  TablePerSize<Colours> colours_;
};

}  // namespace lockstep::vggt
