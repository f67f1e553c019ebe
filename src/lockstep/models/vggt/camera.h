// Poses of a scene's cameras, by iterative refinement.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "lockstep/models/vggt/block.h"
#include "lockstep/models/vggt/config.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::vggt {

class VggtCameraHead : public torch::nn::Module {
 public:
  explicit VggtCameraHead(const VggtConfig& config);

  // Camera tokens of the last layer [B, S, 2 * width] -> [B, S, 9]: translation
  // (3), quaternion (4), fields of view (2, not negative), after the last
  // iteration. Computes in the type of the weights.
  at::Tensor forward(const at::Tensor& tokens);

 private:
  // The correction of one iteration.
  at::Tensor correction(const at::Tensor& tokens, const at::Tensor& embedded);

  VggtConfig config_;
  at::Tensor empty_pose_tokens_;
  std::vector<std::shared_ptr<VggtBlock>> trunk_;
  nn::LayerNorm token_norm_{nullptr};
  nn::LayerNorm trunk_norm_{nullptr};
  nn::Linear embed_pose_{nullptr};
  nn::Linear modulation_{nullptr};
  std::shared_ptr<nn::Mlp> pose_branch_;
};

}  // namespace lockstep::vggt
