#include "lockstep/models/dit/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/nn/adaln.h"
#include "lockstep/nn/conv.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/patches.h"
#include "lockstep/nn/sinusoidal_embedding.h"

namespace lockstep::dit {
namespace {

constexpr int64_t kTimeWidth = 256;
constexpr double kMaxPeriod = 10;
constexpr int64_t kMlpRatio = 4;

// eps keeps vectors shorter than about 1e-12 short.
nn::RmsNormConfig norm_config(const DitConfig& config) {
  constexpr double kMinLength = 1e-12;
  return {.size = config.width,
          .eps = kMinLength * kMinLength / static_cast<double>(config.width),
          .has_scalar_weight = true};
}

nn::AdaLnBlockConfig block_config(const DitConfig& config) {
  return {.norm = norm_config(config),
          .attention = {.width = config.width, .num_heads = config.num_heads},
          .mlp = {.width = config.width,
                  .hidden = kMlpRatio * config.width,
                  .activation = nn::Activation::kGeluTanh}};
}

}  // namespace

class Dit::PatchEmbedder : public torch::nn::Module {
 public:
  explicit PatchEmbedder(const DitConfig& config) {
    proj_ = register_module("proj",
                            nn::Conv2d(nn::ConvConfig{.in = config.channels,
                                                      .out = config.width,
                                                      .kernel = config.patch,
                                                      .stride = config.patch}));
    torch::nn::init::xavier_uniform_(proj_->weight.flatten(1));
    torch::nn::init::zeros_(proj_->bias);
  }

  // [B, C, S, S] -> [B, N, width], row by row.
  at::Tensor forward(const at::Tensor& images) {
    return proj_->forward(images).flatten(2).transpose(1, 2);
  }

 private:
  nn::Conv2d proj_{nullptr};
};

void check_dit_config(const DitConfig& config) {
  if (config.image_size % config.patch != 0) {
    throw ConfigError(fmt::format(
        "--img_size {} is not a multiple of --patch {}: patches must fill the "
        "image",
        config.image_size, config.patch));
  }
  if (config.width % config.num_heads != 0) {
    throw ConfigError(
        fmt::format("--dim {} is not a multiple of --heads {}: heads share it",
                    config.width, config.num_heads));
  }
  if (config.width % 4 != 0) {
    throw ConfigError(fmt::format(
        "--dim {} is not a multiple of 4: sines and cosines of row and column "
        "take a quarter each",
        config.width));
  }
}

double dit_forward_flops(const DitConfig& config) {
  const auto width = static_cast<double>(config.width);
  const auto side = static_cast<double>(config.image_size / config.patch);
  const double patches = side * side;
  const double tokens = patches + static_cast<double>(config.num_registers);
  const auto values =
      static_cast<double>(config.patch * config.patch * config.channels);
  const double linear =
      static_cast<double>(4 + 2 * kMlpRatio) * width * width * tokens;
  const double attention = 2 * tokens * tokens * width;
  const double modulation = 6 * width * width;
  const double ends =
      2 * patches * values * width + (kTimeWidth + 3 * width) * width;
  return 2 * (static_cast<double>(config.depth) *
                  (linear + attention + modulation) +
              ends);
}

Dit::Dit(const DitConfig& config) : config_(config) {
  check_dit_config(config);
  const int64_t side = config.image_size / config.patch;
  register_tokens_ = register_parameter(
      "register_tokens", torch::randn({config.num_registers, config.width}));
  pos_embed_ = register_parameter(
      "pos_embed", nn::grid_position_embedding(side, config.width).unsqueeze(0),
      /*requires_grad=*/false);
  x_embedder_ =
      register_module("x_embedder", std::make_shared<PatchEmbedder>(config));
  t_embedder_ = register_module(
      "t_embedder",
      std::make_shared<nn::TimeEmbedder>(nn::TimeEmbedderConfig{
          .waves = {.width = kTimeWidth, .max_period = kMaxPeriod},
          .width = config.width}));
  y_embedder_ = register_module(
      "y_embedder", std::make_shared<nn::LabelEmbedder>(nn::LabelEmbedderConfig{
                        .name = "embedding",
                        .num_classes = config.num_classes,
                        .width = config.width}));
  blocks_ = register_module("blocks", torch::nn::ModuleList());
  for (int64_t i = 0; i < config.depth; ++i) {
    blocks_->push_back(std::make_shared<nn::AdaLnBlock>(block_config(config)));
  }
  final_layer_ = register_module(
      "final_layer",
      std::make_shared<nn::AdaLnFinalLayer>(nn::AdaLnFinalLayerConfig{
          .norm = norm_config(config),
          .out = config.patch * config.patch * config.channels,
          .order = nn::ModulationOrder::kScaleShift}));
}

at::Tensor Dit::forward(const at::Tensor& images, const at::Tensor& times,
                        const at::Tensor& labels) {
  const at::Tensor condition =
      t_embedder_->forward(times) + y_embedder_->forward(labels);
  const at::Tensor patches = x_embedder_->forward(images) + pos_embed_;
  const int64_t num_patches = patches.size(1);
  // Also without registers: then the empty parameter still has a gradient.
  nn::ResidualStream stream{
      .x = torch::cat({patches, register_tokens_.unsqueeze(0).expand(
                                    {patches.size(0), -1, -1})},
                      1)};
  for (const auto& block : *blocks_) {
    stream = block->as<nn::AdaLnBlock>()->forward(stream, condition);
  }
  stream = nn::slice_tokens(stream, 0, num_patches);
  return nn::join_patches(
      final_layer_->forward(stream, condition),
      {.patch = config_.patch, .channels = config_.channels});
}

}  // namespace lockstep::dit
