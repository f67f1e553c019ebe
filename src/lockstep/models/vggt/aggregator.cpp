#include "lockstep/models/vggt/aggregator.h"

#include <ATen/ATen.h>

#include "lockstep/nn/rope_tables.h"
#include "lockstep/nn/weights.h"

namespace lockstep::vggt {
namespace {

// ImageNet's, in the precision that weights were trained with.
constexpr std::array<float, 3> kColourMean = {0.485F, 0.456F, 0.406F};
constexpr std::array<float, 3> kColourDeviation = {0.229F, 0.224F, 0.225F};

at::Tensor per_channel(const std::array<float, 3>& values) {
  return at::tensor(values).view({3, 1, 1});
}

// token [1, 2, n, width] -> [B * S, n, width]: the first for the first image of
// a scene, the second for all others.
at::Tensor of_images(const at::Tensor& token, int64_t batch,
                     int64_t num_views) {
  const int64_t count = token.size(2);
  const int64_t width = token.size(3);
  const at::Tensor others =
      token.slice(1, 1).expand({1, num_views - 1, count, width});
  return at::cat({token.slice(1, 0, 1), others}, 1)
      .expand({batch, num_views, count, width})
      .reshape({batch * num_views, count, width});
}

}  // namespace

VggtAggregator::VggtAggregator(const VggtConfig& config) : config_(config) {
  const int64_t width = config.width;
  camera_token_ =
      register_parameter("camera_token", nn::new_weight({1, 2, 1, width}));
  register_token_ = register_parameter(
      "register_token", nn::new_weight({1, 2, config.num_registers, width}));
  patch_embed_ =
      register_module("patch_embed", std::make_shared<VggtVit>(config));
  const VggtBlockConfig block{
      .width = width, .num_heads = config.num_heads, .has_rope = true};
  frame_blocks_ = register_blocks(*this, "frame_blocks", config.depth, block);
  global_blocks_ = register_blocks(*this, "global_blocks", config.depth, block);
}

at::Tensor VggtAggregator::patch_tokens(const at::Tensor& images) {
  // Colours are centred before conversion to a narrower type.
  const Colours& colours =
      colours_.get({.dtype = wide_type(), .device = images.device()}, [] {
        return Colours{.mean = per_channel(kColourMean),
                       .deviation = per_channel(kColourDeviation)};
      });
  const at::Tensor flat = images.flatten(0, 1);
  return patch_embed_->forward(((flat - colours.mean) / colours.deviation)
                                   .to(camera_token_.scalar_type()));
}

at::Tensor VggtAggregator::first_tokens(const at::Tensor& images) {
  const int64_t batch = images.size(0);
  const int64_t num_views = images.size(1);
  return at::cat(
      {of_images(camera_token_, batch, num_views),
       of_images(register_token_, batch, num_views), patch_tokens(images)},
      1);
}

at::ScalarType VggtAggregator::wide_type() const {
  return at::promote_types(camera_token_.scalar_type(), at::kFloat);
}

const kernels::RopeTable& VggtAggregator::rope_of(const GridSize& grid) {
  return ropes_.get(
      {.size = grid, .dtype = wide_type(), .device = camera_token_.device()},
      [&] {
        return nn::grid_rope_table(
            {.rows = grid.height,
             .columns = grid.width,
             .head_size = config_.width / config_.num_heads,
             .num_context = num_special_tokens(config_),
             .first_position = 1,
             .theta = config_.rope_frequency,
             .pairs = kernels::RopePairs::kAxialHalves});
      });
}

std::map<int64_t, VggtLayer> VggtAggregator::forward(
    const at::Tensor& images, const std::set<int64_t>& wanted) {
  const kernels::RopeTable& rope =
      rope_of({images.size(3) / config_.patch, images.size(4) / config_.patch});
  at::Tensor tokens = first_tokens(images);
  const int64_t num_tokens = tokens.size(1);
  const std::vector<int64_t> within = {-1, num_tokens, config_.width};
  const std::vector<int64_t> over_all = {
      images.size(0), images.size(1) * num_tokens, config_.width};
  const std::vector<int64_t> shape = {images.size(0), images.size(1),
                                      num_tokens, config_.width};
  std::map<int64_t, VggtLayer> layers;
  for (int64_t i = 0; i < config_.depth; ++i) {
    const auto index = static_cast<size_t>(i);
    const at::Tensor frame =
        frame_blocks_[index]->forward(tokens.view(within), &rope);
    tokens = global_blocks_[index]->forward(frame.view(over_all), &rope);
    if (wanted.contains(i)) {
      layers[i] = {.frame = frame.view(shape), .global = tokens.view(shape)};
    }
  }
  return layers;
}

}  // namespace lockstep::vggt
