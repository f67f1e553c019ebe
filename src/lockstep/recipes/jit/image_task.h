// The recipe jit on images: class-conditional generation, as in the paper.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/models/jit/image_model.h"
#include "lockstep/recipe.h"
#include "lockstep/recipes/images/image_task.h"
#include "lockstep/recipes/jit/jit_settings.h"

namespace lockstep::recipes {

class JitImageTask final : public ImageTask {
 public:
  // settings.images.num_classes is set.
  JitImageTask(const JitSettings& settings, images::ImageSets sets,
               int64_t num_scored);

  TaskInfo info() const override;
  std::shared_ptr<torch::nn::Module> model() const override { return model_; }
  Loss loss(const Batch& batch, SampleRandom& random) override;

  int64_t num_items() const override;
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;
  at::Tensor generate(std::span<const int64_t> items,
                      SampleRandom& random) override;

 private:
  at::Tensor make_images(const std::vector<int64_t>& classes,
                         SampleRandom& random);

  JitShared shared_;
  JitImageSettings settings_;
  int64_t num_classes_;
  std::shared_ptr<jit::JitImage> model_;
};

// Fills in the number of classes. Throws ConfigError.
std::unique_ptr<Task> build_jit_images(const TrainConfig& common,
                                       Purpose purpose, JitSettings& settings);

}  // namespace lockstep::recipes
