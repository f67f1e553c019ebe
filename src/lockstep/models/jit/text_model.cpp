#include "lockstep/models/jit/text_model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>

#include "lockstep/error.h"
#include "lockstep/nn/attention.h"
#include "lockstep/nn/mlp.h"
#include "lockstep/nn/norm.h"

namespace lockstep::jit {
namespace {

constexpr int64_t kChannels = 3;
constexpr double kNormEps = 1e-12;

// [B, C, S, S] -> [B, N, C * patch * patch], patches row by row.
at::Tensor patchify(const at::Tensor& images, int64_t patch) {
  const int64_t side = images.size(2) / patch;
  return images
      .reshape({images.size(0), images.size(1), side, patch, side, patch})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({images.size(0), side * side, -1});
}

// The reverse.
at::Tensor unpatchify(const at::Tensor& patches, const JitTextConfig& config) {
  const int64_t side = config.image_size / config.patch;
  return patches
      .reshape(
          {patches.size(0), side, side, kChannels, config.patch, config.patch})
      .permute({0, 3, 1, 4, 2, 5})
      .reshape(
          {patches.size(0), kChannels, config.image_size, config.image_size});
}

// Rows and columns [1, side, D] -> [1, side * side, D].
at::Tensor grid_of(const at::Tensor& rows, const at::Tensor& columns) {
  return (rows.unsqueeze(2) + columns.unsqueeze(1)).flatten(1, 2);
}

// bool [B, N]: patches with a token.
at::Tensor valid_patches(const at::Tensor& mask, int64_t patch) {
  return patchify(mask.unsqueeze(1).ne(0), patch).any(2);
}

// bool [B, 1, 1, keys], true where a key is attended to. If no patch has a
// token, all are attended to: a softmax over nothing is NaN.
at::Tensor key_mask(const at::Tensor& valid, int64_t num_conditions) {
  at::Tensor keys = valid;
  if (num_conditions > 0) {
    keys = torch::cat(
        {torch::ones({valid.size(0), num_conditions}, valid.options()), valid},
        1);
  } else {
    keys = valid.logical_or(valid.any(1, /*keepdim=*/true).logical_not());
  }
  return keys.view({keys.size(0), 1, 1, keys.size(1)});
}

}  // namespace

// RMS norm, then a scale and a shift that depend on time. Unlike in adaln.h
// both halves of a block share them, there is no gate, and the scale is
// bounded.
class JitText::AdaLn : public torch::nn::Module {
 public:
  // Modulation of all tokens of a sample, [B, 1, D] each.
  struct Factors {
    at::Tensor gain;
    at::Tensor shift;
  };

  explicit AdaLn(int64_t width) {
    auto norm =
        register_module("norm", std::make_shared<torch::nn::Module>("norm"));
    weight_ = norm->register_parameter("weight", torch::ones({width}));
    scale_mlp_ = register_module("scale_mlp", make_mlp(width));
    shift_mlp_ = register_module("shift_mlp", make_mlp(width));
  }

  Factors factors(const at::Tensor& time) {
    const at::Tensor scale = (1 + scale_mlp_->forward(time)).clamp(0.1, 10);
    return {.gain = (weight_ * scale).unsqueeze(1),
            .shift = shift_mlp_->forward(time).unsqueeze(1)};
  }

  static at::Tensor apply(const at::Tensor& x, const Factors& factors) {
    const at::Tensor normed = kernels::rms_norm(x, /*weight=*/{}, kNormEps);
    return torch::addcmul(factors.shift.to(x.scalar_type()), normed,
                          factors.gain.to(x.scalar_type()));
  }

 private:
  static torch::nn::Sequential make_mlp(int64_t width) {
    return torch::nn::Sequential(torch::nn::SiLU(), nn::Linear(width, width));
  }

  at::Tensor weight_;
  torch::nn::Sequential scale_mlp_{nullptr};
  torch::nn::Sequential shift_mlp_{nullptr};
};

class JitText::Block : public torch::nn::Module {
 public:
  explicit Block(const JitTextConfig& config) {
    attn_ = register_module(
        "attn", std::make_shared<nn::Attention>(
                    nn::AttentionConfig{.width = config.width,
                                        .num_heads = config.num_heads,
                                        .qkv_bias = nn::Bias::kNo}));
    // The original is a Sequential whose layers 1 and 2 have no parameters.
    mlp_ = register_module("mlp", std::make_shared<nn::Mlp>(nn::MlpConfig{
                                      .width = config.width,
                                      .hidden = config.mlp_ratio * config.width,
                                      .activation = nn::Activation::kSwiGlu,
                                      .names = {.first = "0", .last = "3"}}));
    ada_ln_ = register_module("adaLN", std::make_shared<AdaLn>(config.width));
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& time,
                     const std::optional<at::Tensor>& mask) {
    const AdaLn::Factors factors = ada_ln_->factors(time);
    const at::Tensor y =
        x + attn_->forward(AdaLn::apply(x, factors), {.mask = mask});
    return y + mlp_->forward(AdaLn::apply(y, factors));
  }

 private:
  std::shared_ptr<nn::Attention> attn_;
  std::shared_ptr<nn::Mlp> mlp_;
  std::shared_ptr<AdaLn> ada_ln_;
};

// Sines and then cosines of t / 10000^(i / (width / 2 - 1)).
class JitText::TimeEmbedding : public torch::nn::Module {
 public:
  explicit TimeEmbedding(int64_t width) {
    const int64_t half = width / 2;
    const double slope = -std::log(10000) / static_cast<double>(half - 1);
    emb_ = register_buffer(
        "emb",
        (torch::arange(half, torch::kDouble) * slope).exp().to(at::kFloat));
  }

  at::Tensor forward(const at::Tensor& times) {
    const at::Tensor angles = times.unsqueeze(1).to(emb_.scalar_type()) * emb_;
    return torch::cat({angles.sin(), angles.cos()}, 1);
  }

 private:
  at::Tensor emb_;
};

void check_jit_text_config(const JitTextConfig& config) {
  if (config.image_size % config.patch != 0) {
    throw ConfigError(
        fmt::format("--img_size {} is not a multiple of {}, the patch in the "
                    "name of --model: "
                    "patches must fill the image",
                    config.image_size, config.patch));
  }
  if (config.width % config.num_heads != 0) {
    throw ConfigError(
        fmt::format("--dim {} is not a multiple of --heads {}: heads share it",
                    config.width, config.num_heads));
  }
  if (config.width % 2 != 0 || config.width < 4) {
    throw ConfigError(fmt::format(
        "--dim {}: it must be even and at least 4, for sines and cosines",
        config.width));
  }
}

double jit_text_forward_flops(const JitTextConfig& config,
                              TextCondition condition) {
  const auto width = static_cast<double>(config.width);
  const auto side = static_cast<double>(config.image_size / config.patch);
  const double patches = side * side;
  const double tokens =
      condition == TextCondition::kPrompt ? 2 * patches : patches;
  const auto values =
      static_cast<double>(config.patch * config.patch * kChannels);
  const double linear =
      static_cast<double>(4 + 3 * config.mlp_ratio) * width * width * tokens;
  const double attention = 2 * tokens * tokens * width;
  const double modulation = 2 * width * width;
  return 2 * (static_cast<double>(config.depth) *
                  (linear + attention + modulation) +
              (tokens + patches) * values * width);
}

JitText::JitText(const JitTextConfig& config) : config_(config) {
  check_jit_text_config(config);
  const int64_t side = config.image_size / config.patch;
  const int64_t values = kChannels * config.patch * config.patch;
  const auto table = [&](const char* name) {
    return register_parameter(name,
                              0.02 * torch::randn({1, side, config.width}));
  };
  pos_embed_h_ = table("pos_embed_h");
  pos_embed_w_ = table("pos_embed_w");
  cond_pos_embed_h_ = table("cond_pos_embed_h");
  cond_pos_embed_w_ = table("cond_pos_embed_w");
  patch_embed_ = register_module(
      "patch_embed", nn::Linear(values, config.width, nn::Bias::kNo));
  time_embed_ = register_module("time_embed",
                                std::make_shared<TimeEmbedding>(config.width));
  condition_embed_ = register_module(
      "condition_embed", nn::Linear(values, config.width, nn::Bias::kNo));
  blocks_ = register_module("blocks", torch::nn::ModuleList());
  for (int64_t i = 0; i < config.depth; ++i) {
    blocks_->push_back(std::make_shared<Block>(config));
  }
  output_proj_ =
      register_module("output_proj", nn::Linear(config.width, values));
  // The original truncates these at 2, which is 100 standard deviations.
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* linear = module->as<nn::Linear>()) {
      torch::nn::init::normal_(linear->weight, 0, 0.02);
      if (linear->bias.defined()) torch::nn::init::zeros_(linear->bias);
    }
  }
}

void JitText::freeze_conditions() {
  condition_embed_->weight.requires_grad_(false);
  cond_pos_embed_h_.requires_grad_(false);
  cond_pos_embed_w_.requires_grad_(false);
}

at::Tensor JitText::forward(const JitTextInput& input) {
  at::Tensor x = patch_embed_->forward(patchify(input.images, config_.patch)) +
                 grid_of(pos_embed_h_, pos_embed_w_);
  const int64_t num_patches = x.size(1);
  if (input.condition.defined()) {
    const at::Tensor front =
        condition_embed_->forward(patchify(input.condition, config_.patch)) +
        grid_of(cond_pos_embed_h_, cond_pos_embed_w_);
    x = torch::cat({front, x}, 1);
  }
  at::Tensor valid;
  std::optional<at::Tensor> mask;
  if (input.mask.defined()) {
    valid = valid_patches(input.mask, config_.patch);
    mask = key_mask(valid, x.size(1) - num_patches)
               .expand({-1, -1, x.size(1), -1});
  }
  const at::Tensor time = time_embed_->forward(input.times);
  for (const auto& block : *blocks_) {
    x = block->as<Block>()->forward(x, time, mask);
  }
  at::Tensor clean = output_proj_->forward(x.slice(1, x.size(1) - num_patches));
  if (valid.defined()) clean = clean * valid.unsqueeze(2);
  return unpatchify(clean, config_);
}

}  // namespace lockstep::jit
