#include "lockstep/models/atlas/fusion.h"

#include <torch/torch.h>

#include "lockstep/nn/decoder_layer.h"
#include "lockstep/nn/norm.h"

namespace lockstep::atlas {
namespace {

constexpr int64_t kFeedForwardRatio = 4;

// libtorch's Linear: adding the bias separately affects the last bits.
torch::nn::Sequential make_projection(int64_t inputs,
                                      const FusionConfig& config) {
  return torch::nn::Sequential(torch::nn::Linear(inputs, config.width),
                               nn::LayerNorm(config.width),
                               torch::nn::Dropout(config.dropout));
}

}  // namespace

MultimodalFusion::MultimodalFusion(const FusionConfig& config) {
  lang_proj_ = register_module("lang_proj",
                               make_projection(config.language_size, config));
  geom_proj_ = register_module("geom_proj",
                               make_projection(config.geometry_size, config));
  layers_ = register_module("cross_attn_layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < config.num_layers; ++i) {
    layers_->push_back(std::make_shared<nn::DecoderLayer>(
        nn::DecoderLayerConfig{.width = config.width,
                               .num_heads = config.num_heads,
                               .feed_forward = kFeedForwardRatio * config.width,
                               .dropout = config.dropout,
                               .norm = nn::NormPlace::kPreNorm}));
  }
  output_norm_ = register_module("output_norm", nn::LayerNorm(config.width));
  output_proj_ =
      register_module("output_proj", nn::Linear(config.width, config.width));
}

at::Tensor MultimodalFusion::forward(const at::Tensor& language,
                                     const at::Tensor& mask,
                                     const at::Tensor& geometry) {
  at::Tensor x = lang_proj_->forward(language);
  const at::Tensor seen = geom_proj_->forward(geometry);
  const at::Tensor keys = mask.unsqueeze(1).unsqueeze(1);
  for (const auto& layer : *layers_) {
    x = layer->as<nn::DecoderLayer>()->forward(x, seen, {.self = keys});
  }
  const at::Tensor count = mask.sum(1, /*keepdim=*/true);
  x = x.masked_fill(mask.logical_not().unsqueeze(-1), 0).sum(1) / count;
  return output_proj_->forward(output_norm_->forward(x));
}

}  // namespace lockstep::atlas
