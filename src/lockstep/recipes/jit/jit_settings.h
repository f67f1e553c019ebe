// The settings of the recipe jit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/models/jit/image_flow.h"
#include "lockstep/models/jit/variant.h"
#include "lockstep/recipes/images/sampling.h"
#include "lockstep/settings.h"

namespace lockstep::recipes {

// Settings that both kinds of data use.
struct JitShared {
  std::string model = "JiT-B/4";
  int64_t image_size = 64;
  // Unset: 50 for images, 20 for text.
  std::optional<int64_t> sample_steps = {};
  // Unset: by the name of the model.
  std::optional<int64_t> width = {};
  std::optional<int64_t> depth = {};
  std::optional<int64_t> num_heads = {};
};

struct JitImageSettings {
  double attn_dropout = 0;
  double proj_dropout = 0;
  // Times are sigmoid(p_mean + p_std * n), n from N(0, 1).
  double p_mean = -0.8;
  double p_std = 0.8;
  jit::JitObjective objective = {};
  // Probability of dropping the class of an image, for guidance.
  double label_drop_prob = 0.1;
  std::string sampling_method = "heun";
  double cfg = 2.9;
  diffusion::GuidanceInterval interval = {.low = 0.1, .high = 1};
  ImageSampling sampling = {};
  // Unset: that of the data.
  std::optional<int64_t> num_classes = {};
};

struct JitTextSettings {
  std::optional<std::string> tokenizer_path = {};  // Unset: bytes.
  std::optional<int64_t> max_tokens = {};
  bool enable_condition = false;
  std::optional<int64_t> cond_img_size = {};
  bool use_chat_template = false;
  bool predict_clean = true;
  std::optional<std::string> prompt = {};
  int64_t num_texts = 8;
  // Probability of padding after a text.
  double show_padding = 0.5;
  // Unset: the length of the longest of the first texts.
  std::optional<int64_t> sample_tokens = {};
};

struct JitSettings {
  std::string data_kind = "auto";  // "text" or "images" once resolved.
  JitShared shared = {};
  JitImageSettings images = {};
  JitTextSettings text = {};
};

// Adds the options, whose variables are in `own`, and the rules: defaults and
// checkpoint layout follow the kind of data.
void describe_jit(Settings& settings, JitSettings& own);

// The size that --model names, as the other flags change it.
jit::JitVariant jit_variant(const JitShared& shared);

}  // namespace lockstep::recipes
