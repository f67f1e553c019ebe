// The task of the recipe scribble.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/datasets/voc/own_images.h"
#include "lockstep/datasets/voc/samples.h"
#include "lockstep/models/deeplab/model.h"
#include "lockstep/prediction.h"
#include "lockstep/recipes/scribble/scribble.h"
#include "lockstep/reporting.h"
#include "lockstep/sampling.h"
#include "lockstep/task.h"

namespace lockstep::recipes {

// Members that are set depend on the purpose.
struct ScribbleTaskData {
  DataSets sets = {};
  std::string text = {};  // Logged at the start of a run.
  // File with initial weights; unset: random weights.
  std::optional<std::string> first_weights = {};
  std::shared_ptr<const Dataset> shown = {};  // Images to show in samplings.
  std::shared_ptr<const voc::WholeSamples> whole = {};  // To evaluate.
  voc::OwnImages own_images = {};                       // To segment.
};

class ScribbleTask final : public Task,
                           public Sampling,
                           public Prediction,
                           public Reporting {
 public:
  ScribbleTask(const ScribbleSettings& settings, ScribbleTaskData data);

  TaskInfo info() const override;
  DataSets data() const override { return data_.sets; }
  std::shared_ptr<torch::nn::Module> model() const override { return model_; }
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;
  Metrics derive(const MetricCounts& counts) const override;

  std::vector<OutputFile> report(const Metrics& metrics,
                                 const MetricCounts& counts) override;

  int64_t num_items() const override;
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;

  int64_t num_inputs() const override { return data_.own_images.size(); }
  std::vector<OutputFile> predict(int64_t input) override;

 private:
  at::Tensor normalised(const at::Tensor& images);
  void evaluate_centres(const Batch& batch, MetricSums& sums);
  // Classes [H, W], uint8, of an image, uint8 [3, H, W].
  at::Tensor segment(const at::Tensor& image);

  ScribbleSettings settings_;
  ScribbleTaskData data_;
  std::shared_ptr<deeplab::ScribbleNet> model_;
  at::Tensor mean_;  // Copied to the model's device when first used.
  at::Tensor scale_;
};

}  // namespace lockstep::recipes
