// The recipe jit for texts: tokens as pixels, pixels from noise.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/datasets/texts/text_data.h"
#include "lockstep/models/jit/text_model.h"
#include "lockstep/recipe.h"
#include "lockstep/recipes/jit/shared.h"

namespace lockstep {

struct JitTextSettings {
  std::optional<std::string> tokenizer_path = {};  // Unset: bytes.
  std::optional<int64_t> max_tokens = {};
  bool enable_condition = false;
  std::optional<int64_t> cond_img_size = {};
  bool use_chat_template = false;
  bool predict_clean = true;
  std::optional<std::string> prompt = {};
  int64_t num_texts = 8;
  // How often a text is shown with padding behind it.
  double show_padding = 0.5;
  // Unset: as many as the longest of the first texts.
  std::optional<int64_t> sample_tokens = {};
};

class JitTextRecipe final : public Recipe {
 public:
  // `shared` outlives it, and holds its values when the command line is read.
  explicit JitTextRecipe(JitShared& shared) : shared_(shared) {}

  void describe(Options& options, TrainConfig& common) override;
  TaskInfo facts() const override;
  DataSets open_data(const TrainConfig& common) override;
  void prepare_sampling(const TrainConfig& common) override;
  std::shared_ptr<torch::nn::Module> make_model() override;
  std::vector<ParameterGroup> parameter_groups(
      torch::nn::Module& model) override;
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;
  // uint8 [B, 3, S, S].
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;

 private:
  struct Noisy;

  JitTextConfig model_config() const;
  TextShape text_shape() const;
  void check_settings() const;
  void open_pixels();
  at::Tensor padded_mask(const at::Tensor& mask, SampleRandom& random) const;
  at::Tensor sampled_mask(const at::Tensor& known) const;
  Noisy noisy(const Batch& batch, const at::Tensor& times,
              const at::Tensor& noise) const;
  std::optional<std::string> prompt_of(int64_t item) const;
  TextImage prompt_image(const std::string& prompt) const;

  JitShared& shared_;
  JitTextSettings settings_;
  std::shared_ptr<const TextPixels> pixels_;
  std::vector<std::string> prompts_;  // Of samplings with conditions.
  std::shared_ptr<JitText> model_;
};

}  // namespace lockstep
