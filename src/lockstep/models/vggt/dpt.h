// A number or a few for every pixel, drawn from tokens of four layers (a dense
// prediction transformer's head).
#pragma once

#include <torch/nn/module.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/models/vggt/aggregator.h"
#include "lockstep/models/vggt/config.h"
#include "lockstep/models/vggt/tables.h"
#include "lockstep/nn/bare.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep {

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
  std::shared_ptr<BareLayerNorm> norm_;
  std::array<std::shared_ptr<BareConv2d>, 4> projects_;
  // Four times and twice as large, as it is, half as large.
  std::shared_ptr<BareConvTranspose2d> enlarge4_;
  std::shared_ptr<BareConvTranspose2d> enlarge2_;
  std::shared_ptr<BareConv2d> halve_;
  std::array<std::shared_ptr<BareConv2d>, 4> narrow_;
  std::array<std::shared_ptr<FusionBlock>, 4> fusion_;
  std::shared_ptr<BareConv2d> output1_;
  std::shared_ptr<BareConv2d> output2_;
  std::shared_ptr<BareConv2d> output3_;
  TablePerSize<MapWaves> waves_;
};

}  // namespace lockstep
