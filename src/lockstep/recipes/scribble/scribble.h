// The recipe scribble: images cut into classes, learned from strokes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/workers.h"
#include "lockstep/datasets/voc/voc_set.h"
#include "lockstep/models/deeplab/model.h"
#include "lockstep/models/deeplab/windows.h"
#include "lockstep/recipe.h"
#include "lockstep/recipes/scribble/confusion.h"
#include "lockstep/recipes/scribble/own_images.h"

namespace lockstep {

// The weights of the loss, by the original's names.
struct ScribbleWeights {
  double l_segs = 1;
  // Unset: that of l_segs with label smoothing, else 0, as in the original.
  std::optional<double> l_pesudo = {};
  double l_lorm = 0;
  double l_ds = 0;
  double l_dc = 0;
  double label_smooth = 0;
};

struct ScribbleSettings {
  ScribbleModelConfig model = {};
  ScribbleDataConfig data = {};
  std::string mode = "SBD_pesudo_distancemap";
  std::string model_path = "None";
  ScribbleWeights weights = {};
  WindowsConfig windows = {};
  std::string save_path = {};  // Of evaluated images.
  std::string images = {};     // The user's own.
};

class ScribbleRecipe final : public Recipe {
 public:
  void describe(Options& options, TrainConfig& common) override;
  void resolve_defaults(const Options& options, TrainConfig& common) override;
  TaskInfo facts() const override;
  DataSets open_data(const TrainConfig& common) override;
  DataSets open_eval_data(const TrainConfig& common) override;
  void prepare_sampling(const TrainConfig& common) override;
  std::shared_ptr<torch::nn::Module> make_model() override;
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;
  Metrics derive(const MetricCounts& counts) override;
  std::vector<OutputFile> result_files(const Metrics& metrics) override;
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;
  std::vector<OutputFile> predict(int64_t input) override;
  std::string prepare(const std::vector<std::string>& arguments,
                      const ShowProgress& progress) override;

 private:
  void describe_data(Options& options);
  void describe_loss(Options& options);
  void describe_evaluation(Options& options);
  double pseudo_weight() const;
  void check_weights() const;
  void settle_sizes();
  at::Tensor normalised(const at::Tensor& images);
  void evaluate_centres(const Batch& batch, MetricSums& sums);
  // Classes [H, W], uint8, of a image, uint8 [3, H, W].
  at::Tensor segment(const at::Tensor& image);

  ScribbleSettings settings_;
  std::shared_ptr<ScribbleNet> model_;
  at::Tensor mean_;  // On the model's device, as scale_.
  at::Tensor scale_;
  // What the model begins with.
  std::optional<std::string> first_weights_;
  std::string data_text_;
  std::shared_ptr<const Dataset> shown_;  // Whose images samplings show.
  std::shared_ptr<const WholeSamples> whole_;
  OwnImages own_images_;
  SegmentationScores scores_;  // Of the last evaluation.
};

}  // namespace lockstep
