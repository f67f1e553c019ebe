// JiT for images of text: a transformer over patches that predicts the clean
// image.
//
// Parameters have the names and shapes of the Python project PixelDLM, whose
// state dicts it reads and writes. Peculiarities of that project are part of
// the model: one modulation for both halves of a block, without gates; learned
// tables of rows and columns; times from 0 to 999 without an MLP.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cstdint>
#include <memory>

#include "lockstep/nn/linear.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::jit {

struct JitTextConfig {
  int64_t image_size = 64;
  int64_t patch = 4;
  int64_t width = 768;
  int64_t depth = 12;
  int64_t num_heads = 12;
  int64_t mlp_ratio = 4;
};

// Throws ConfigError, which names the recipe's flags, for incompatible sizes.
void check_jit_text_config(const JitTextConfig& config);

enum class TextCondition { kNone, kPrompt };

// Multiplications and additions of one forward pass of one image.
double jit_text_forward_flops(const JitTextConfig& config,
                              TextCondition condition);

struct JitTextInput {
  at::Tensor images = {};     // [B, 3, S, S], with noise.
  at::Tensor times = {};      // [B], 0 to 999.
  at::Tensor condition = {};  // [B, 3, S, S] of the prompts; unset: none.
  // [B, S, S], not 0 where a token is; unset: everywhere. A patch is used if
  // any of its pixels is; others are masked and give 0.
  at::Tensor mask = {};
};

class JitText : public torch::nn::Module {
 public:
  explicit JitText(const JitTextConfig& config);

  // -> clean images [B, 3, S, S]. Without conditions only the patches of the
  // image are computed, with the same result: nothing would attend to the
  // others. Parameters of conditions then get no gradient.
  at::Tensor forward(const JitTextInput& input);

  // For a training without conditions, before DistributedDataParallel takes the
  // parameters: those of conditions require no gradient, so that no rank waits
  // for one and weight decay does not change them.
  void freeze_conditions();

  const JitTextConfig& config() const { return config_; }
  at::ScalarType dtype() const { return pos_embed_h_.scalar_type(); }

 private:
  class AdaLn;
  class Block;
  class TimeEmbedding;

  JitTextConfig config_;
  at::Tensor pos_embed_h_;
  at::Tensor pos_embed_w_;
  at::Tensor cond_pos_embed_h_;
  at::Tensor cond_pos_embed_w_;
  nn::Linear patch_embed_{nullptr};
  std::shared_ptr<TimeEmbedding> time_embed_;
  nn::Linear condition_embed_{nullptr};
  torch::nn::ModuleList blocks_{nullptr};
  nn::Linear output_proj_{nullptr};
};

}  // namespace lockstep::jit
