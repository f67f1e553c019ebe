// The recipe jit: Just image Transformers, on class-conditional images or, with
// tokens as pixels, on text.
#pragma once

#include <memory>
#include <string>

#include "lockstep/recipe.h"
#include "lockstep/recipes/jit/jit_settings.h"

namespace lockstep::recipes {

class JitRecipe final : public Recipe {
 public:
  std::string name() const override { return "jit"; }
  std::string summary() const override {
    return "images by class, or text as pixels, from noise: JiT";
  }
  void describe(Settings& settings) override {
    describe_jit(settings, settings_);
  }
  // A JitImageTask or a JitTextTask.
  std::unique_ptr<Task> build(const Settings& settings,
                              Purpose purpose) override;

 private:
  JitSettings settings_;
};

}  // namespace lockstep::recipes
