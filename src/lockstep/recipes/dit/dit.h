// The recipe dit: class-conditional images by a rectified flow.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/models/dit/model.h"
#include "lockstep/recipe.h"
#include "lockstep/recipes/images/sampling.h"

namespace lockstep::recipes {

struct DitSettings {
  dit::DitConfig model = {};
  // Probability of dropping the class of an image, for guidance.
  double class_dropout = 0.1;
  std::vector<double> cfg_scales = {1.0, 2.5, 5.0};
  int64_t sample_steps = 50;
  ImageSampling sampling = {};
  // For images that are scored.
  double fid_cfg_scale = 5.0;
  int64_t fid_steps = 25;
  // Unset: that of the data.
  std::optional<int64_t> num_classes = {};
};

class DitRecipe final : public Recipe {
 public:
  std::string name() const override { return "dit"; }
  std::string summary() const override {
    return "images by class from noise: DiT and rectified flow";
  }
  void describe(Settings& settings) override;
  std::unique_ptr<Task> build(const Settings& settings,
                              Purpose purpose) override;

 private:
  DitSettings settings_;
};

}  // namespace lockstep::recipes
