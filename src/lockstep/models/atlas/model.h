// The trained part of atlas: from frozen features of images and a sentence to
// the next action of a robot.
//
// Parameters have the names and shapes of the original project.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>

#include <memory>
#include <string>

#include "lockstep/models/atlas/fusion.h"
#include "lockstep/models/atlas/geometry_encoder.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::atlas {

// Range of gripper values in the data.
enum class GripperRange { kZeroOne, kMinusOneOne };

struct AtlasModelConfig {
  GeometryConfig geometry = {};
  FusionConfig fusion = {};
  double head_dropout = 0.1;
  GripperRange gripper = GripperRange::kZeroOne;
};

// Throws ConfigError, which names the recipe's settings.
void check_atlas_config(const AtlasModelConfig& config);

struct AtlasInput {
  ViewFeatures views = {};
  at::Tensor language = {};  // [B, T, language size]
  at::Tensor mask = {};      // bool [B, T], true where a token is.
};

struct AtlasOutput {
  at::Tensor pose = {};           // [B, 6]: x, y, z, roll, pitch, yaw
  at::Tensor gripper_logit = {};  // [B, 1]
  at::Tensor gripper = {};        // [B, 1], in the range of the data
};

class ActionHead : public torch::nn::Module {
 public:
  ActionHead(int64_t width, double dropout, GripperRange range);

  AtlasOutput forward(const at::Tensor& fused);

 private:
  GripperRange range_;
  torch::nn::Sequential shared_layers_{nullptr};
  torch::nn::Sequential pose_head_{nullptr};
  torch::nn::Sequential gripper_head_{nullptr};
};

class AtlasModel : public torch::nn::Module {
 public:
  explicit AtlasModel(const AtlasModelConfig& config);

  AtlasOutput forward(const AtlasInput& input);

  const AtlasModelConfig& config() const { return config_; }

 private:
  AtlasModelConfig config_;
  std::shared_ptr<GeometryEncoder> geom_encoder_;
  std::shared_ptr<MultimodalFusion> fusion_;
  std::shared_ptr<ActionHead> action_head_;
};

}  // namespace lockstep::atlas
