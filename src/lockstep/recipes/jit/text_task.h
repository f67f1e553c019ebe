// The recipe jit on text: generates texts as images with tokens as pixels.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/datasets/texts/text_data.h"
#include "lockstep/models/jit/text_model.h"
#include "lockstep/recipe.h"
#include "lockstep/recipes/jit/jit_settings.h"
#include "lockstep/sampling.h"

namespace lockstep::recipes {

class JitTextTask final : public Task, public Sampling {
 public:
  // Without data sets it can only sample.
  JitTextTask(const JitSettings& settings,
              std::shared_ptr<const jit::TextPixels> pixels,
              texts::TextSets sets);

  TaskInfo info() const override;
  DataSets data() const override;
  std::shared_ptr<torch::nn::Module> model() const override { return model_; }
  std::vector<ParameterGroup> parameter_groups() const override;
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;

  int64_t num_items() const override { return settings_.num_texts; }
  // uint8 [B, 3, S, S].
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;

 private:
  struct Noisy;

  int64_t num_sample_tokens() const;
  Noisy noisy(const Batch& batch, const at::Tensor& times,
              const at::Tensor& noise) const;
  std::optional<std::string> prompt_of(int64_t item) const;

  JitShared shared_;
  JitTextSettings settings_;
  texts::TextShape shape_;
  std::shared_ptr<const jit::TextPixels> pixels_;
  texts::TextSets sets_;
  jit::JitTextConfig config_;
  std::shared_ptr<jit::JitText> model_;
};

// Fills in the number of tokens to sample. Throws ConfigError.
std::unique_ptr<Task> build_jit_text(const TrainConfig& common, Purpose purpose,
                                     JitSettings& settings);

}  // namespace lockstep::recipes
