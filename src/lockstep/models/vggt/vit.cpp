#include "lockstep/models/vggt/vit.h"

#include <ATen/ATen.h>

#include "lockstep/nn/conv.h"
#include "lockstep/nn/weights.h"

namespace lockstep::vggt {
namespace {

constexpr double kNormEps = 1e-6;

}  // namespace

class VggtVit::PatchEmbed : public torch::nn::Module {
 public:
  explicit PatchEmbed(const VggtConfig& config)
      : proj_(register_module(
            "proj", nn::Conv2d(nn::ConvConfig{.in = 3,
                                              .out = config.width,
                                              .kernel = config.patch,
                                              .stride = config.patch}))) {}

  // [F, width, height, width of the grid]
  at::Tensor forward(const at::Tensor& images) {
    return proj_->forward(images);
  }

 private:
  nn::Conv2d proj_;
};

VggtVit::VggtVit(const VggtConfig& config) : config_(config) {
  const int64_t width = config.width;
  const int64_t side = config.image_size / config.patch;
  cls_token_ = register_parameter("cls_token", nn::new_weight({1, 1, width}));
  pos_embed_ = register_parameter("pos_embed",
                                  nn::new_weight({1, 1 + side * side, width}));
  register_tokens_ = register_parameter(
      "register_tokens", nn::new_weight({1, config.num_registers, width}));
  // For training with masks; in checkpoints, but not used here.
  register_parameter("mask_token", nn::new_weight({1, width}));
  patch_embed_ =
      register_module("patch_embed", std::make_shared<PatchEmbed>(config));
  blocks_ = register_blocks(
      *this, "blocks", config.vit_depth,
      {.width = width, .num_heads = config.num_heads, .norm_eps = kNormEps});
  norm_ = register_module("norm", nn::LayerNorm(width, kNormEps));
}

at::Tensor VggtVit::positions_of(const GridSize& grid) const {
  const int64_t side = config_.image_size / config_.patch;
  if (grid == GridSize{side, side}) return pos_embed_;
  const int64_t width = config_.width;
  const at::ScalarType dtype = pos_embed_.scalar_type();
  const at::Tensor of_patches = pos_embed_.slice(1, 1)
                                    .to(at::promote_types(dtype, at::kFloat))
                                    .reshape({1, side, side, width})
                                    .permute({0, 3, 1, 2});
  const at::Tensor resized =
      at::_upsample_bicubic2d_aa(of_patches, {grid.height, grid.width},
                                 /*align_corners=*/false)
          .to(dtype);
  return at::cat({pos_embed_.slice(1, 0, 1),
                  resized.permute({0, 2, 3, 1}).reshape({1, -1, width})},
                 1);
}

at::Tensor VggtVit::forward(const at::Tensor& images) {
  const at::Tensor maps = patch_embed_->forward(images);
  const at::ScalarType wide = at::promote_types(maps.scalar_type(), at::kFloat);
  const at::Tensor positions = positions_of({maps.size(2), maps.size(3)});
  const at::Tensor patches =
      maps.flatten(2).transpose(1, 2).to(wide) + positions.slice(1, 1);
  const auto for_all = [&](const at::Tensor& token) {
    return token.expand({images.size(0), -1, -1});
  };
  // Registers have no position.
  at::Tensor x =
      at::cat({for_all(cls_token_ + positions.slice(1, 0, 1)).to(wide),
               for_all(register_tokens_).to(wide), patches},
              1);
  for (const auto& block : blocks_) x = block->forward(x);
  const kernels::TokenNorm& norm = norm_->norm();
  return at::layer_norm(x, norm.weight.sizes(), norm.weight.to(wide),
                        norm.bias.to(wide), norm.eps)
      .slice(1, 1 + config_.num_registers);
}

}  // namespace lockstep::vggt
