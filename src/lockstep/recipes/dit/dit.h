// The recipe dit: images by class, from noise by a rectified flow.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/models/dit/flow.h"
#include "lockstep/models/dit/model.h"
#include "lockstep/recipe.h"
#include "lockstep/recipes/images/sampling.h"

namespace lockstep {

struct DitSettings {
  DitConfig model = {};
  // How often a image is shown without its class, for guidance.
  double class_dropout = 0.1;
  std::vector<double> cfg_scales = {1.0, 2.5, 5.0};
  int64_t sample_steps = 50;
  ImageSampling sampling = {};
  // Of images that are scored.
  double fid_cfg_scale = 5.0;
  int64_t fid_steps = 25;
  // Unset: as many as the data have.
  std::optional<int64_t> num_classes = {};
};

class DitRecipe final : public Recipe {
 public:
  void describe(Options& options, TrainConfig& common) override;
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
  int64_t items_per_scale() const;
  FlowStart start_of(const std::vector<int64_t>& classes,
                     const std::vector<double>& scales,
                     SampleRandom& random) const;

  DitSettings settings_;
  int64_t num_scored_ = 0;
  std::shared_ptr<Dit> model_;
};

}  // namespace lockstep
