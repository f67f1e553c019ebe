// The recipe protein: predicts side chains from backbones by masked fragments.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/datasets/proteins/prepare.h"
#include "lockstep/models/protein/masking.h"
#include "lockstep/models/protein/model.h"
#include "lockstep/preparation.h"
#include "lockstep/recipe.h"

namespace lockstep::recipes {

struct ProteinSettings {
  protein::ProteinConfig model = {};
  protein::MaskingConfig masking = {};
  std::string cache_dir = {};
  double val_split = 0.1;
  int64_t max_residues = 2048;
  std::string split = "val";            // The split to evaluate.
  std::optional<std::string> pdb = {};  // The input to predict.
  int64_t num_iterations = 10;
};

class ProteinRecipe final : public Recipe, public Preparation {
 public:
  std::string name() const override { return "protein"; }
  std::string summary() const override {
    return "side chains from backbones: hidden fragments, chi1";
  }
  void describe(Settings& settings) override;
  std::unique_ptr<Task> build(const Settings& settings,
                              Purpose purpose) override;
  void describe_preparation(Options& options) override;
  std::string prepare(const Arguments& arguments,
                      const Progress& progress) override;

 private:
  ProteinSettings settings_;
  proteins::ProteinPrepareConfig preparation_;
};

}  // namespace lockstep::recipes
