// The head of a dense prediction transformer: values for every pixel from the
// tokens of four layers.
#pragma once

#include <torch/nn/module.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/models/vggt/aggregator.h"
#include "lockstep/models/vggt/config.h"
#include "lockstep/models/vggt/tables.h"
#include "lockstep/nn/conv.h"
#include "lockstep/nn/norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::vggt {

enum class DptValues {
  kPoints,  // 3 numbers, sign(y) * (exp(|y|) - 1)
  kDepth,   // 1 number, exp(y)
};

struct DptMaps {
  at::Tensor values = {};      // [B, S, H, W, 3 or 1]
  at::Tensor confidence = {};  // [B, S, H, W], above 1
};

class VggtDptHead : public torch::nn::Module {
 public:
  VggtDptHead(const VggtConfig& config, DptValues kind);

  // Layers as named by the config's dpt_layers; image: its size in pixels. A
  // few images at a time, so that memory does not grow with their number.
  // Computes in the type of the weights.
  DptMaps forward(const std::array<VggtLayer, 4>& layers,
                  const GridSize& image);

 private:
  class ResidualUnit;
  class FusionBlock;

  // Features of each layer at its resolution, [F, channels, h, w].
  at::Tensor layer_maps(size_t index, const at::Tensor& tokens,
                        const GridSize& image);
  // [F, H, W, values and confidence], before their activation.
  at::Tensor draw(const std::array<at::Tensor, 4>& tokens,
                  const GridSize& image);
  void register_scratch();
  void add_waves(const at::Tensor& maps, const GridSize& image);

  VggtConfig config_;
  DptValues kind_;
  nn::LayerNorm norm_{nullptr};
  std::array<nn::Conv2d, 4> projects_ = {nullptr, nullptr, nullptr, nullptr};
  // Four times and twice as large, as it is, half as large.
  nn::ConvTranspose2d enlarge4_{nullptr};
  nn::ConvTranspose2d enlarge2_{nullptr};
  nn::Conv2d halve_{nullptr};
  std::array<nn::Conv2d, 4> narrow_ = {nullptr, nullptr, nullptr, nullptr};
  std::array<std::shared_ptr<FusionBlock>, 4> fusion_;
  nn::Conv2d output1_{nullptr};
  nn::Conv2d output2_{nullptr};
  nn::Conv2d output3_{nullptr};
  TablePerSize<MapWaves> waves_;
};

}  // namespace lockstep::vggt
