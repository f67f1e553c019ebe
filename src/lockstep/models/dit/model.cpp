#include "lockstep/models/dit/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/nn/attention.h"
#include "lockstep/nn/condition.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/init.h"
#include "lockstep/nn/linear.h"
#include "lockstep/nn/mlp.h"
#include "lockstep/nn/norm.h"
#include "lockstep/nn/patches.h"

namespace lockstep {
namespace {

constexpr int64_t kTimeWidth = 256;
constexpr double kMaxPeriod = 10;
constexpr int64_t kMlpRatio = 4;

class ScalarNorm : public torch::nn::Module {
 public:
  ScalarNorm() : g_(register_parameter("g", torch::ones({1}))) {}
  at::Tensor forward(const at::Tensor& x) { return rms_norm(x, g_); }

 private:
  at::Tensor g_;
};

}  // namespace

class Dit::PatchEmbedder : public torch::nn::Module {
 public:
  explicit PatchEmbedder(const DitConfig& config) {
    proj_ = register_module(
        "proj",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(config.channels,
                                                   config.width, config.patch)
                              .stride(config.patch)));
    torch::nn::init::xavier_uniform_(proj_->weight.flatten(1));
    torch::nn::init::zeros_(proj_->bias);
  }

  // [B, C, S, S] -> [B, N, width], row by row.
  at::Tensor forward(const at::Tensor& images) {
    return proj_->forward(images).flatten(2).transpose(1, 2);
  }

 private:
  torch::nn::Conv2d proj_{nullptr};
};

class Dit::Block : public torch::nn::Module {
 public:
  explicit Block(const DitConfig& config) {
    const int64_t width = config.width;
    norm1_ = register_module("norm1", std::make_shared<ScalarNorm>());
    attn_ = register_module(
        "attn", std::make_shared<SelfAttention>(AttentionConfig{
                    .width = width, .num_heads = config.num_heads}));
    norm2_ = register_module("norm2", std::make_shared<ScalarNorm>());
    mlp_ = register_module(
        "mlp", std::make_shared<Mlp>(
                   MlpConfig{.width = width, .hidden = kMlpRatio * width}));
    reset_linear_layers(*this);
    modulation_ =
        register_module("adaLN_modulation", make_modulation(width, 6));
  }

  // x [B, N, D], condition [B, D]
  at::Tensor forward(const at::Tensor& x, const at::Tensor& condition) {
    const auto part = modulation_->forward(condition).chunk(6, 1);
    const at::Tensor attended = attn_->forward(
        modulate(norm1_->forward(x), {.shift = part[0], .scale = part[1]}));
    const at::Tensor y = x + part[2].unsqueeze(1) * attended;
    const at::Tensor thought = mlp_->forward(
        modulate(norm2_->forward(y), {.shift = part[3], .scale = part[4]}));
    return y + part[5].unsqueeze(1) * thought;
  }

 private:
  std::shared_ptr<ScalarNorm> norm1_;
  std::shared_ptr<SelfAttention> attn_;
  std::shared_ptr<ScalarNorm> norm2_;
  std::shared_ptr<Mlp> mlp_;
  torch::nn::Sequential modulation_{nullptr};
};

class Dit::FinalLayer : public torch::nn::Module {
 public:
  explicit FinalLayer(const DitConfig& config) {
    norm_ = register_module("norm_final", std::make_shared<ScalarNorm>());
    linear_ = register_module(
        "linear", torch::nn::Linear(config.width, config.patch * config.patch *
                                                      config.channels));
    torch::nn::init::zeros_(linear_->weight);
    torch::nn::init::zeros_(linear_->bias);
    modulation_ =
        register_module("adaLN_modulation", make_modulation(config.width, 2));
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& condition) {
    const auto part = modulation_->forward(condition).chunk(2, 1);
    return apply_linear(
        linear_,
        modulate(norm_->forward(x), {.shift = part[1], .scale = part[0]}));
  }

 private:
  std::shared_ptr<ScalarNorm> norm_;
  torch::nn::Linear linear_{nullptr};
  torch::nn::Sequential modulation_{nullptr};
};

void check_dit_config(const DitConfig& config) {
  if (config.image_size % config.patch != 0) {
    throw ConfigError(fmt::format(
        "--img_size {} is no multiple of --patch {}: patches must fill the "
        "image",
        config.image_size, config.patch));
  }
  if (config.width % config.num_heads != 0) {
    throw ConfigError(
        fmt::format("--dim {} is no multiple of --heads {}: heads share it",
                    config.width, config.num_heads));
  }
  if (config.width % 4 != 0) {
    throw ConfigError(fmt::format(
        "--dim {} is no multiple of 4: sines and cosines of row and column "
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
      "pos_embed", grid_position_embedding(side, config.width).unsqueeze(0),
      /*requires_grad=*/false);
  x_embedder_ =
      register_module("x_embedder", std::make_shared<PatchEmbedder>(config));
  t_embedder_ = register_module(
      "t_embedder",
      std::make_shared<TimeEmbedder>(TimeEmbedderConfig{
          .waves = {.width = kTimeWidth, .max_period = kMaxPeriod},
          .width = config.width}));
  y_embedder_ = register_module(
      "y_embedder", std::make_shared<LabelEmbedder>(
                        LabelEmbedderConfig{.name = "embedding",
                                            .num_classes = config.num_classes,
                                            .width = config.width}));
  blocks_ = register_module("blocks", torch::nn::ModuleList());
  for (int64_t i = 0; i < config.depth; ++i) {
    blocks_->push_back(std::make_shared<Block>(config));
  }
  final_layer_ =
      register_module("final_layer", std::make_shared<FinalLayer>(config));
}

at::Tensor Dit::forward(const at::Tensor& images, const at::Tensor& times,
                        const at::Tensor& labels) {
  const at::Tensor condition =
      t_embedder_->forward(times) + y_embedder_->forward(labels);
  const at::Tensor patches = x_embedder_->forward(images) + pos_embed_;
  const int64_t num_patches = patches.size(1);
  // Also without registers: then the empty parameter still has a gradient.
  at::Tensor x = torch::cat({patches, register_tokens_.unsqueeze(0).expand(
                                          {patches.size(0), -1, -1})},
                            1);
  for (const auto& block : *blocks_) {
    x = block->as<Block>()->forward(x, condition);
  }
  x = x.slice(1, 0, num_patches);
  return join_patches(final_layer_->forward(x, condition),
                      {.patch = config_.patch, .channels = config_.channels});
}

}  // namespace lockstep
