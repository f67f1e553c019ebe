#include "lockstep/models/jit/image_model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/nn/adaln.h"
#include "lockstep/nn/conv.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/patches.h"
#include "lockstep/nn/rope_tables.h"
#include "lockstep/nn/sinusoidal_embedding.h"

namespace lockstep::jit {
namespace {

constexpr int64_t kTimeWidth = 256;

// 4 * width * 2 / 3, rounded down.
int64_t hidden_width(int64_t width) { return 8 * width / 3; }

// Dropout is in the middle half of the blocks only.
nn::AdaLnBlockConfig block_config(const JitImageConfig& config,
                                  int64_t number) {
  const int64_t quarter = config.depth / 4;
  const bool is_middle = number >= quarter && number < 3 * quarter;
  const double proj_dropout = is_middle ? config.proj_dropout : 0;
  return {.norm = {.size = config.width},
          .attention = {.width = config.width,
                        .num_heads = config.num_heads,
                        .names = nn::AttentionNames::kJit,
                        .qk_norm = nn::QkNorm::kRms,
                        .attn_dropout = is_middle ? config.attn_dropout : 0,
                        .proj_dropout = proj_dropout},
          .mlp = {.width = config.width,
                  .hidden = hidden_width(config.width),
                  .activation = nn::Activation::kSwiGlu,
                  .dropout = proj_dropout,
                  .names = {.first = "w12", .last = "w3"}}};
}

}  // namespace

class JitImage::PatchEmbedder : public torch::nn::Module {
 public:
  explicit PatchEmbedder(const JitImageConfig& config) {
    proj1_ = register_module("proj1",
                             nn::Conv2d(nn::ConvConfig{.in = config.channels,
                                                       .out = config.bottleneck,
                                                       .kernel = config.patch,
                                                       .stride = config.patch,
                                                       .bias = nn::Bias::kNo}));
    proj2_ = register_module("proj2",
                             nn::Conv2d(nn::ConvConfig{.in = config.bottleneck,
                                                       .out = config.width}));
    torch::nn::init::xavier_uniform_(proj1_->weight.flatten(1));
    torch::nn::init::xavier_uniform_(proj2_->weight.flatten(1));
    torch::nn::init::zeros_(proj2_->bias);
  }

  // [B, C, S, S] -> [B, N, width], row by row. Contiguous: every block before
  // the class tokens would keep the channel-major layout of the convolution.
  at::Tensor forward(const at::Tensor& images) {
    return proj2_->forward(proj1_->forward(images))
        .flatten(2)
        .transpose(1, 2)
        .contiguous();
  }

 private:
  nn::Conv2d proj1_{nullptr};
  nn::Conv2d proj2_{nullptr};
};

class JitImage::Transformer : public torch::nn::Module {
 public:
  explicit Transformer(const JitImageConfig& config) : config_(config) {
    const int64_t width = config.width;
    const int64_t side = config.image_size / config.patch;
    pos_embed_ = register_parameter(
        "pos_embed", nn::grid_position_embedding(side, width).unsqueeze(0),
        /*requires_grad=*/false);
    context_positions_ =
        register_parameter("in_context_posemb",
                           0.02 * torch::randn({1, config.num_context, width}));
    t_embedder_ = register_module(
        "t_embedder", std::make_shared<nn::TimeEmbedder>(nn::TimeEmbedderConfig{
                          .waves = {.width = kTimeWidth}, .width = width}));
    y_embedder_ = register_module(
        "y_embedder",
        std::make_shared<nn::LabelEmbedder>(
            nn::LabelEmbedderConfig{.name = "embedding_table",
                                    .num_classes = config.num_classes,
                                    .width = config.width}));
    x_embedder_ =
        register_module("x_embedder", std::make_shared<PatchEmbedder>(config));
    blocks_ = register_module("blocks", torch::nn::ModuleList());
    for (int64_t i = 0; i < config.depth; ++i) {
      blocks_->push_back(
          std::make_shared<nn::AdaLnBlock>(block_config(config, i)));
    }
    final_layer_ = register_module(
        "final_layer",
        std::make_shared<nn::AdaLnFinalLayer>(nn::AdaLnFinalLayerConfig{
            .norm = {.size = width},
            .out = config.patch * config.patch * config.channels}));
  }

  at::Tensor forward(const at::Tensor& images, const at::Tensor& times,
                     const at::Tensor& labels) {
    const at::Tensor label = y_embedder_->forward(labels);
    const at::Tensor condition = t_embedder_->forward(times) + label;
    nn::ResidualStream stream{.x = x_embedder_->forward(images) + pos_embed_};
    const kernels::RopeTable& whole_rope = rope_on(stream.x.device());
    const kernels::RopeTable patch_rope = kernels::slice_positions(
        whole_rope, config_.num_context, whole_rope.complex.size(0));
    const kernels::RopeTable* rope = &patch_rope;
    for (size_t i = 0; i < blocks_->size(); ++i) {
      if (static_cast<int64_t>(i) == config_.context_start) {
        stream = {.x = torch::cat({label.unsqueeze(1) + context_positions_,
                                   nn::joined(stream)},
                                  1)};
        rope = &whole_rope;
      }
      stream =
          blocks_[i]->as<nn::AdaLnBlock>()->forward(stream, condition, rope);
    }
    stream = nn::slice_tokens(stream, config_.num_context, stream.x.size(1));
    return nn::join_patches(
        final_layer_->forward(stream, condition),
        {.patch = config_.patch, .channels = config_.channels});
  }

  at::ScalarType dtype() const { return pos_embed_.scalar_type(); }

 private:
  // Neither a parameter nor a buffer: state dicts do not hold it. Made when the
  // model is first used on a device, in its precision.
  const kernels::RopeTable& rope_on(at::Device device) {
    const at::Tensor& table = rope_.complex;
    if (!table.defined() || table.device() != device ||
        table.scalar_type() != c10::toComplexType(dtype())) {
      const int64_t side = config_.image_size / config_.patch;
      rope_ = kernels::moved_to(
          nn::grid_rope_table({.rows = side,
                               .columns = side,
                               .head_size = config_.width / config_.num_heads,
                               .num_context = config_.num_context}),
          at::TensorOptions(device).dtype(dtype()));
    }
    return rope_;
  }

  JitImageConfig config_;
  kernels::RopeTable rope_;
  at::Tensor pos_embed_;
  at::Tensor context_positions_;
  std::shared_ptr<nn::TimeEmbedder> t_embedder_;
  std::shared_ptr<nn::LabelEmbedder> y_embedder_;
  std::shared_ptr<PatchEmbedder> x_embedder_;
  torch::nn::ModuleList blocks_{nullptr};
  std::shared_ptr<nn::AdaLnFinalLayer> final_layer_;
};

JitImageConfig jit_image_config(const JitVariant& variant, int64_t image_size,
                                int64_t num_classes) {
  return {.image_size = image_size,
          .patch = variant.patch,
          .width = variant.width,
          .depth = variant.depth,
          .num_heads = variant.num_heads,
          .num_classes = num_classes,
          .bottleneck = variant.size == 'H' ? 256 : 128,
          // 4 of 12, 8 of 24, 10 of 32.
          .context_start = variant.depth / 3};
}

void check_jit_image_config(const JitImageConfig& config) {
  if (config.image_size % config.patch != 0) {
    throw ConfigError(fmt::format(
        "--img_size {} is not a multiple of the {} pixels of a patch: patches "
        "must fill the image; use another --img_size, or another number "
        "behind the '/' of --model",
        config.image_size, config.patch));
  }
  if (config.width % config.num_heads != 0 ||
      config.width / config.num_heads % 4 != 0) {
    throw ConfigError(fmt::format(
        "--dim {} is not a multiple of 4 x --heads {}: heads share it, and a "
        "quarter of each is sines and cosines of row and column",
        config.width, config.num_heads));
  }
}

double jit_image_forward_flops(const JitImageConfig& config) {
  const auto width = static_cast<double>(config.width);
  const auto side = static_cast<double>(config.image_size / config.patch);
  const double patches = side * side;
  const double before = static_cast<double>(config.context_start);
  const double after = static_cast<double>(config.depth) - before;
  const double more = patches + static_cast<double>(config.num_context);
  const auto values =
      static_cast<double>(config.patch * config.patch * config.channels);
  const auto bottleneck = static_cast<double>(config.bottleneck);
  const double per_token =
      4 * width * width +
      3 * width * static_cast<double>(hidden_width(config.width));
  const auto block = [&](double tokens) {
    return tokens * per_token + 2 * tokens * tokens * width + 6 * width * width;
  };
  const double ends =
      patches * (values * bottleneck + bottleneck * width + width * values) +
      (kTimeWidth + 3 * width) * width;
  return 2 * (before * block(patches) + after * block(more) + ends);
}

JitImage::JitImage(const JitImageConfig& config) : config_(config) {
  check_jit_image_config(config);
  transformer_ = register_module("net", std::make_shared<Transformer>(config));
}

at::Tensor JitImage::forward(const at::Tensor& images, const at::Tensor& times,
                             const at::Tensor& labels) {
  return transformer_->forward(images, times, labels);
}

at::ScalarType JitImage::dtype() const { return transformer_->dtype(); }

}  // namespace lockstep::jit
