#include "lockstep/models/atlas/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/nn/linear.h"
#include "lockstep/nn/norm.h"

namespace lockstep::atlas {
namespace {

constexpr int64_t kPoseSize = 6;
constexpr int64_t kHidden = 512;
constexpr int64_t kNarrow = 256;

torch::nn::Sequential make_end(int64_t outputs) {
  return torch::nn::Sequential(nn::Linear(kNarrow, kNarrow), torch::nn::ReLU(),
                               nn::Linear(kNarrow, outputs));
}

}  // namespace

void check_atlas_config(const AtlasModelConfig& config) {
  const FusionConfig& fusion = config.fusion;
  if (fusion.width % fusion.num_heads != 0) {
    throw ConfigError(
        fmt::format("fusion_hidden_dim {} is not divisible by fusion_heads {}",
                    fusion.width, fusion.num_heads));
  }
}

ActionHead::ActionHead(int64_t width, double dropout, GripperRange range)
    : range_(range) {
  shared_layers_ = register_module(
      "shared_layers",
      torch::nn::Sequential(nn::Linear(width, kHidden), nn::LayerNorm(kHidden),
                            torch::nn::GELU(), torch::nn::Dropout(dropout),
                            nn::Linear(kHidden, kNarrow),
                            nn::LayerNorm(kNarrow), torch::nn::GELU()));
  pose_head_ = register_module("pose_head", make_end(kPoseSize));
  gripper_head_ = register_module("gripper_head", make_end(1));
}

AtlasOutput ActionHead::forward(const at::Tensor& fused) {
  const at::Tensor x = shared_layers_->forward(fused);
  AtlasOutput output{.pose = pose_head_->forward(x),
                     .gripper_logit = gripper_head_->forward(x)};
  const at::Tensor closed = output.gripper_logit.sigmoid();
  output.gripper =
      range_ == GripperRange::kZeroOne ? closed : closed.mul(2).sub(1);
  return output;
}

AtlasModel::AtlasModel(const AtlasModelConfig& config) : config_(config) {
  check_atlas_config(config);
  geom_encoder_ = register_module(
      "geom_encoder", std::make_shared<GeometryEncoder>(config.geometry));
  fusion_ = register_module("fusion",
                            std::make_shared<MultimodalFusion>(config.fusion));
  action_head_ = register_module(
      "action_head",
      std::make_shared<ActionHead>(config.fusion.width, config.head_dropout,
                                   config.gripper));
}

AtlasOutput AtlasModel::forward(const AtlasInput& input) {
  const at::Tensor geometry = geom_encoder_->forward(input.views);
  return action_head_->forward(
      fusion_->forward(input.language, input.mask, geometry));
}

}  // namespace lockstep::atlas
