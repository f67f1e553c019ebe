// The smallest recipe: an image classifier on generated images.
//
// It shows most parts of the interface and trains in seconds on a CPU.
#pragma once

#include <memory>
#include <string>

#include "lockstep/recipe.h"

namespace lockstep::recipes {

struct TinySettings {
  int64_t width = 8;
  double dropout = 0;
  bool augment = true;
  double noise = 0.1;
  int64_t train_samples = 1024;
  int64_t val_samples = 250;
};

class TinyRecipe final : public Recipe {
 public:
  std::string name() const override { return "tiny"; }
  std::string summary() const override {
    return "image classifier on generated images, for a first look";
  }
  void describe(Settings& settings) override;
  std::unique_ptr<Task> build(const Settings& settings,
                              Purpose purpose) override;

 private:
  TinySettings settings_;
};

}  // namespace lockstep::recipes
