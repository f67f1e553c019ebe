// The smallest recipe: an image classifier on generated images.
//
// It shows every part of the interface and trains in seconds on a CPU.
#pragma once

#include <memory>

#include "lockstep/recipe.h"

namespace lockstep {

struct TinyConfig {
  int64_t width = 8;
  double dropout = 0;
  bool augment = true;
  double noise = 0.1;
  int64_t train_samples = 1024;
  int64_t val_samples = 250;
};

class TinyNet;

class TinyRecipe final : public Recipe {
 public:
  void describe(Options& options, TrainConfig& common) override;
  TaskInfo facts() const override;
  DataSets open_data(const TrainConfig& common) override;
  std::shared_ptr<torch::nn::Module> make_model() override;
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;

 private:
  TinyConfig config_;
  std::shared_ptr<TinyNet> net_;
};

}  // namespace lockstep
