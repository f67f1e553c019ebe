// The recipe scribble: semantic segmentation learned from strokes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/workers.h"
#include "lockstep/datasets/voc/prepare.h"
#include "lockstep/datasets/voc/voc_set.h"
#include "lockstep/models/deeplab/model.h"
#include "lockstep/models/deeplab/windows.h"
#include "lockstep/preparation.h"
#include "lockstep/recipe.h"

namespace lockstep::recipes {

// The weights of the loss, by the original's names.
struct ScribbleWeights {
  double l_segs = 1;
  // Unset: equal to l_segs with label smoothing, else 0, as in the original.
  std::optional<double> l_pesudo = {};
  double l_lorm = 0;
  double l_ds = 0;
  double l_dc = 0;
  double label_smooth = 0;
};

// The weight of pseudo labels.
double pseudo_weight(const ScribbleWeights& weights);

struct ScribbleSettings {
  deeplab::ScribbleModelConfig model = {};
  voc::ScribbleDataConfig data = {};
  std::string mode = "SBD_pesudo_distancemap";
  std::string model_path = "None";
  ScribbleWeights weights = {};
  deeplab::WindowsConfig windows = {};
  std::string save_path = {};  // For evaluated images.
  std::string images = {};     // The user's own.
};

class ScribbleRecipe final : public Recipe, public Preparation {
 public:
  std::string name() const override { return "scribble"; }
  std::string summary() const override {
    return "segmentation learned from scribbles: dilated ResNet and LoRM";
  }
  void describe(Settings& settings) override;
  std::unique_ptr<Task> build(const Settings& settings,
                              Purpose purpose) override;
  void describe_preparation(Options& options) override;
  std::string prepare(const Arguments& arguments,
                      const Progress& progress) override;

 private:
  void describe_data(Options& options);
  void describe_loss(Options& options);
  void describe_evaluation(Options& options);

  ScribbleSettings settings_;
  voc::VocPrepareConfig preparation_;
};

}  // namespace lockstep::recipes
