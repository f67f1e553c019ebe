// The task of the recipe dit.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/models/dit/flow.h"
#include "lockstep/models/dit/model.h"
#include "lockstep/recipes/dit/dit.h"
#include "lockstep/recipes/images/image_task.h"

namespace lockstep::recipes {

class DitTask final : public ImageTask {
 public:
  DitTask(const DitSettings& settings, images::ImageSets sets,
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
  int64_t items_per_scale() const;
  dit::FlowStart start_of(const std::vector<int64_t>& classes,
                          const std::vector<double>& scales,
                          SampleRandom& random) const;

  DitSettings settings_;
  std::shared_ptr<dit::Dit> model_;
};

}  // namespace lockstep::recipes
