// VGGT (arXiv 2503.11651): camera poses, depth and 3-D points from images of a
// scene.
//
// Names and shapes of parameters are the published ones (the track head is left
// out). They have no memory until they are loaded (nn/weights.h).
#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "lockstep/models/vggt/aggregator.h"
#include "lockstep/models/vggt/camera.h"
#include "lockstep/models/vggt/config.h"
#include "lockstep/models/vggt/dpt.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::vggt {

// Outputs to compute.
struct VggtWants {
  bool points = true;
  bool pose = true;
  bool depth = false;
};

struct VggtGeometry {
  // [B, S, 2 * width]: the mean of all tokens of the last two layers.
  at::Tensor tokens = {};
  at::Tensor pose = {};    // [B, S, 9]: translation, quaternion, field of view.
  at::Tensor points = {};  // [B, S, H, W, 3]
  at::Tensor points_confidence = {};  // [B, S, H, W]
  at::Tensor depth = {};              // [B, S, H, W, 1]
  at::Tensor depth_confidence = {};   // [B, S, H, W]
};

// Each part computes in the type of its own weights: the aggregator in any, the
// heads are meant for float32. A surrounding autocast is switched off. Not
// thread-safe: tables are cached at the first use of a size.
class Vggt : public torch::nn::Module {
 public:
  explicit Vggt(const VggtConfig& config);

  // images [B, S, 3, H, W], 0 .. 1, S views of each scene. Throws ConfigError
  // for sides that are not multiples of the patch.
  VggtGeometry forward(const at::Tensor& images, const VggtWants& wants = {});

  const VggtConfig& config() const { return config_; }
  const std::shared_ptr<VggtAggregator>& aggregator() const {
    return aggregator_;
  }

 private:
  void check_images(const at::Tensor& images) const;

  VggtConfig config_;
  std::shared_ptr<VggtAggregator> aggregator_;
  std::shared_ptr<VggtCameraHead> camera_head_;
  std::shared_ptr<VggtDptHead> point_head_;
  std::shared_ptr<VggtDptHead> depth_head_;
};

}  // namespace lockstep::vggt
