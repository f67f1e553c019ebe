// The recipe jit: Just image Transformers, on images by class or, as a
// language model whose tokens are pixels, on text.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/recipe.h"
#include "lockstep/recipes/jit/image_recipe.h"
#include "lockstep/recipes/jit/shared.h"
#include "lockstep/recipes/jit/text_recipe.h"

namespace lockstep {

// Does what the recipe for the kind of data does.
class JitRecipe final : public Recipe {
 public:
  JitRecipe() = default;
  // The two recipes refer to what they share.
  JitRecipe(const JitRecipe&) = delete;
  JitRecipe& operator=(const JitRecipe&) = delete;

  void describe(Options& options, TrainConfig& common) override;
  void resolve_defaults(const Options& options, TrainConfig& common) override;
  TaskInfo facts() const override;
  DataSets open_data(const TrainConfig& common) override;
  void prepare_sampling(const TrainConfig& common) override;
  std::shared_ptr<torch::nn::Module> make_model() override;
  std::vector<ParameterGroup> parameter_groups(
      torch::nn::Module& model) override;
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;
  at::Tensor generate(std::span<const int64_t> items,
                      SampleRandom& random) override;

 private:
  Recipe& recipe();
  const Recipe& recipe() const;

  JitShared shared_;
  std::string data_kind_ = "auto";
  JitImageRecipe images_{shared_};
  JitTextRecipe text_{shared_};
};

}  // namespace lockstep
