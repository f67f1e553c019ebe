// The recipe jit on images: by class, from noise, as in the paper of JiT.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/models/jit/image_flow.h"
#include "lockstep/models/jit/image_model.h"
#include "lockstep/recipe.h"
#include "lockstep/recipes/images/sampling.h"
#include "lockstep/recipes/jit/shared.h"

namespace lockstep {

struct JitImageSettings {
  double attn_dropout = 0;
  double proj_dropout = 0;
  // Times are sigmoid(p_mean + p_std * n), n from N(0, 1).
  double p_mean = -0.8;
  double p_std = 0.8;
  JitObjective objective = {};
  // How often a image is shown without its class, for guidance.
  double label_drop_prob = 0.1;
  std::string sampling_method = "heun";
  double cfg = 2.9;
  GuidanceInterval interval = {.low = 0.1, .high = 1};
  ImageSampling sampling = {};
  // Unset: as many as the data have.
  std::optional<int64_t> num_classes = {};
};

// describe() adds what is of images alone. The settings in `shared`, which
// outlives this object, are described by who owns it.
class JitImageRecipe final : public Recipe {
 public:
  explicit JitImageRecipe(const JitShared& shared) : shared_(shared) {}

  void describe(Options& options, TrainConfig& common) override;
  void resolve_defaults(const Options& options, TrainConfig& common) override;
  TaskInfo facts() const override;
  DataSets open_data(const TrainConfig& common) override;
  void prepare_sampling(const TrainConfig& common) override;
  std::shared_ptr<torch::nn::Module> make_model() override;
  Loss loss(const Batch& batch, SampleRandom& random) override;
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;
  at::Tensor generate(std::span<const int64_t> items,
                      SampleRandom& random) override;

 private:
  void describe_model(Options& options);
  void describe_flow(Options& options);
  JitImageConfig model_config() const;
  at::Tensor make_images(const std::vector<int64_t>& classes,
                         SampleRandom& random);

  const JitShared& shared_;
  JitImageSettings settings_;
  int64_t num_classes_ = 10;  // Until data are opened.
  int64_t num_scored_ = 0;
  std::shared_ptr<JitImage> model_;
};

}  // namespace lockstep
