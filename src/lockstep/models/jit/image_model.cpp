#include "lockstep/models/jit/image_model.h"

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
#include "lockstep/nn/rope.h"

namespace lockstep {
namespace {

constexpr int64_t kTimeWidth = 256;

// Two thirds of four times the width, rounded down.
int64_t hidden_width(int64_t width) { return 8 * width / 3; }

}  // namespace

class JitImage::PatchEmbedder : public torch::nn::Module {
 public:
  explicit PatchEmbedder(const JitImageConfig& config) {
    using torch::nn::Conv2dOptions;
    proj1_ = register_module(
        "proj1",
        torch::nn::Conv2d(
            Conv2dOptions(config.channels, config.bottleneck, config.patch)
                .stride(config.patch)
                .bias(false)));
    proj2_ = register_module("proj2", torch::nn::Conv2d(Conv2dOptions(
                                          config.bottleneck, config.width, 1)));
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
  torch::nn::Conv2d proj1_{nullptr};
  torch::nn::Conv2d proj2_{nullptr};
};

class JitImage::Block : public torch::nn::Module {
 public:
  Block(const JitImageConfig& config, int64_t number) {
    const int64_t width = config.width;
    const int64_t quarter = config.depth / 4;
    const bool is_middle = number >= quarter && number < 3 * quarter;
    const double proj_dropout = is_middle ? config.proj_dropout : 0;
    norm1_ = register_module("norm1", std::make_shared<RmsNorm>(width));
    attn_ = register_module(
        "attn", std::make_shared<SelfAttention>(AttentionConfig{
                    .width = width,
                    .num_heads = config.num_heads,
                    .qk_norm = QkNorm::kRms,
                    .attn_dropout = is_middle ? config.attn_dropout : 0,
                    .proj_dropout = proj_dropout}));
    norm2_ = register_module("norm2", std::make_shared<RmsNorm>(width));
    mlp_ = register_module("mlp", std::make_shared<SwiGlu>(SwiGluConfig{
                                      .width = width,
                                      .hidden = hidden_width(width),
                                      .dropout = proj_dropout}));
    reset_linear_layers(*this);
    modulation_ =
        register_module("adaLN_modulation", make_modulation(width, 6));
  }

  // x [B, N, D], condition [B, D]
  at::Tensor forward(const at::Tensor& x, const at::Tensor& condition,
                     const at::Tensor& rotations) {
    const auto part = modulation_->forward(condition).chunk(6, 1);
    const at::Tensor attended = attn_->forward(
        modulate(norm1_->forward(x), {.shift = part[0], .scale = part[1]}),
        rotations);
    const at::Tensor y = x + part[2].unsqueeze(1) * attended;
    const at::Tensor thought = mlp_->forward(
        modulate(norm2_->forward(y), {.shift = part[3], .scale = part[4]}));
    return y + part[5].unsqueeze(1) * thought;
  }

 private:
  std::shared_ptr<RmsNorm> norm1_;
  std::shared_ptr<SelfAttention> attn_;
  std::shared_ptr<RmsNorm> norm2_;
  std::shared_ptr<SwiGlu> mlp_;
  torch::nn::Sequential modulation_{nullptr};
};

class JitImage::FinalLayer : public torch::nn::Module {
 public:
  explicit FinalLayer(const JitImageConfig& config) {
    norm_ =
        register_module("norm_final", std::make_shared<RmsNorm>(config.width));
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
        modulate(norm_->forward(x), {.shift = part[0], .scale = part[1]}));
  }

 private:
  std::shared_ptr<RmsNorm> norm_;
  torch::nn::Linear linear_{nullptr};
  torch::nn::Sequential modulation_{nullptr};
};

class JitImage::Net : public torch::nn::Module {
 public:
  explicit Net(const JitImageConfig& config) : config_(config) {
    const int64_t width = config.width;
    const int64_t side = config.image_size / config.patch;
    pos_embed_ = register_parameter(
        "pos_embed", grid_position_embedding(side, width).unsqueeze(0),
        /*requires_grad=*/false);
    context_places_ =
        register_parameter("in_context_posemb",
                           0.02 * torch::randn({1, config.num_context, width}));
    t_embedder_ = register_module(
        "t_embedder", std::make_shared<TimeEmbedder>(TimeEmbedderConfig{
                          .waves = {.width = kTimeWidth}, .width = width}));
    y_embedder_ = register_module(
        "y_embedder", std::make_shared<LabelEmbedder>(
                          LabelEmbedderConfig{.name = "embedding_table",
                                              .num_classes = config.num_classes,
                                              .width = config.width}));
    x_embedder_ =
        register_module("x_embedder", std::make_shared<PatchEmbedder>(config));
    blocks_ = register_module("blocks", torch::nn::ModuleList());
    for (int64_t i = 0; i < config.depth; ++i) {
      blocks_->push_back(std::make_shared<Block>(config, i));
    }
    final_layer_ =
        register_module("final_layer", std::make_shared<FinalLayer>(config));
  }

  at::Tensor forward(const at::Tensor& images, const at::Tensor& times,
                     const at::Tensor& labels) {
    const at::Tensor label = y_embedder_->forward(labels);
    const at::Tensor condition = t_embedder_->forward(times) + label;
    at::Tensor x = x_embedder_->forward(images) + pos_embed_;
    const at::Tensor all_rotations = rotations_on(x.device());
    at::Tensor rotations = all_rotations.slice(0, config_.num_context);
    for (size_t i = 0; i < blocks_->size(); ++i) {
      if (static_cast<int64_t>(i) == config_.context_start) {
        x = torch::cat({label.unsqueeze(1) + context_places_, x}, 1);
        rotations = all_rotations;
      }
      x = blocks_[i]->as<Block>()->forward(x, condition, rotations);
    }
    x = x.slice(1, config_.num_context);
    return join_patches(final_layer_->forward(x, condition),
                        {.patch = config_.patch, .channels = config_.channels});
  }

  at::ScalarType dtype() const { return pos_embed_.scalar_type(); }

 private:
  // Neither a parameter nor a buffer: state dicts do not hold it. Made when the
  // model is first used on a device, in its precision.
  const at::Tensor& rotations_on(at::Device device) {
    const at::ScalarType type = c10::toComplexType(dtype());
    if (!rotations_.defined() || rotations_.device() != device ||
        rotations_.scalar_type() != type) {
      rotations_ =
          grid_rotations({.side = config_.image_size / config_.patch,
                          .head_size = config_.width / config_.num_heads,
                          .num_context = config_.num_context})
              .to(device, type);
    }
    return rotations_;
  }

  JitImageConfig config_;
  at::Tensor rotations_;
  at::Tensor pos_embed_;
  at::Tensor context_places_;
  std::shared_ptr<TimeEmbedder> t_embedder_;
  std::shared_ptr<LabelEmbedder> y_embedder_;
  std::shared_ptr<PatchEmbedder> x_embedder_;
  torch::nn::ModuleList blocks_{nullptr};
  std::shared_ptr<FinalLayer> final_layer_;
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
        "--img_size {} is no multiple of the {} pixels of a patch: patches "
        "must fill the image; use another --img_size, or another number "
        "behind the '/' of --model",
        config.image_size, config.patch));
  }
  if (config.width % config.num_heads != 0 ||
      config.width / config.num_heads % 4 != 0) {
    throw ConfigError(fmt::format(
        "--dim {} is no multiple of 4 x --heads {}: heads share it, and a "
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
  net_ = register_module("net", std::make_shared<Net>(config));
}

at::Tensor JitImage::forward(const at::Tensor& images, const at::Tensor& times,
                             const at::Tensor& labels) {
  return net_->forward(images, times, labels);
}

at::ScalarType JitImage::dtype() const { return net_->dtype(); }

}  // namespace lockstep
