#include "lockstep/models/vggt/camera.h"

#include <ATen/ATen.h>

#include "lockstep/nn/weights.h"

namespace lockstep::vggt {
namespace {

constexpr int64_t kPoseSize = 9;
constexpr int64_t kFieldOfView = 7;  // First index of the field of view.
constexpr double kPlainNormEps = 1e-6;

}  // namespace

VggtCameraHead::VggtCameraHead(const VggtConfig& config) : config_(config) {
  const int64_t width = 2 * config.width;
  empty_pose_tokens_ = register_parameter("empty_pose_tokens",
                                          nn::new_weight({1, 1, kPoseSize}));
  trunk_ = register_blocks(*this, "trunk", config.camera_depth,
                           {.width = width, .num_heads = config.num_heads});
  token_norm_ = register_module("token_norm", nn::LayerNorm(width));
  trunk_norm_ = register_module("trunk_norm", nn::LayerNorm(width));
  embed_pose_ = register_module("embed_pose", nn::Linear(kPoseSize, width));
  // Checkpoints number it after its activation.
  modulation_ = register_module("poseLN_modulation",
                                std::make_shared<torch::nn::Module>())
                    ->register_module("1", nn::Linear(width, 3 * width));
  pose_branch_ = register_module(
      "pose_branch",
      std::make_shared<nn::Mlp>(nn::MlpConfig{
          .width = width, .hidden = width / 2, .out = kPoseSize}));
}

at::Tensor VggtCameraHead::correction(const at::Tensor& tokens,
                                      const at::Tensor& embedded) {
  const auto parts = modulation_->forward(at::silu(embedded)).chunk(3, -1);
  const at::Tensor& shift = parts[0];
  const at::Tensor& scale = parts[1];
  const at::Tensor& gate = parts[2];
  const at::Tensor plain =
      at::layer_norm(tokens, {tokens.size(-1)}, {}, {}, kPlainNormEps);
  at::Tensor x =
      at::addcmul(tokens, gate, at::addcmul(plain + shift, plain, scale));
  for (const auto& block : trunk_) x = block->forward(x);
  return pose_branch_->forward(trunk_norm_->forward(x));
}

at::Tensor VggtCameraHead::forward(const at::Tensor& tokens) {
  const at::Tensor normed =
      token_norm_->forward(tokens.to(empty_pose_tokens_.scalar_type()));
  at::Tensor pose =
      correction(normed, embed_pose_->forward(empty_pose_tokens_.expand(
                             {normed.size(0), normed.size(1), kPoseSize})));
  for (int64_t i = 1; i < config_.camera_iterations; ++i) {
    // Gradients flow through the last correction only.
    pose = pose.detach();
    pose = pose + correction(normed, embed_pose_->forward(pose));
  }
  // Only the result is rectified, not the input of corrections.
  return at::cat(
      {pose.slice(2, 0, kFieldOfView), at::relu(pose.slice(2, kFieldOfView))},
      2);
}

}  // namespace lockstep::vggt
