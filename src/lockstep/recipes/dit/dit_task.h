// The task of the recipe dit.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/datasets/images/image_sets.h"
#include "lockstep/image_scoring.h"
#include "lockstep/models/dit/flow.h"
#include "lockstep/models/dit/model.h"
#include "lockstep/recipes/dit/dit.h"
#include "lockstep/sampling.h"
#include "lockstep/task.h"

namespace lockstep::recipes {

class DitTask final : public Task, public Sampling, public ImageScoring {
 public:
  // Without data sets it can only sample.
  DitTask(const DitSettings& settings, images::ImageSets sets,
          int64_t num_scored);

  TaskInfo info() const override;
  DataSets data() const override;
  std::shared_ptr<torch::nn::Module> model() const override { return model_; }
  Loss loss(const Batch& batch, SampleRandom& random) override;

  int64_t num_items() const override;
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;
  bool samples_averages() const override { return true; }

  int64_t num_images() const override { return num_scored_; }
  std::shared_ptr<const Dataset> reference() const override {
    return sets_.reference;
  }
  at::Tensor generate(std::span<const int64_t> items,
                      SampleRandom& random) override;

 private:
  int64_t items_per_scale() const;
  dit::FlowStart start_of(const std::vector<int64_t>& classes,
                          const std::vector<double>& scales,
                          SampleRandom& random) const;

  DitSettings settings_;
  images::ImageSets sets_;
  int64_t num_scored_;
  std::shared_ptr<dit::Dit> model_;
};

}  // namespace lockstep::recipes
