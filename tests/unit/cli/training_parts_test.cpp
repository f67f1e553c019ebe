#include "lockstep/cli/training_parts.h"

#include <gtest/gtest.h>

#include "unit/engine/flags.h"
#include "unit/engine/line_task.h"

namespace lockstep {
namespace {

class UntrainableTask final : public testing::LineTask {
 public:
  DataSets data() const override { return {}; }
};

class UntrainableRecipe final : public Recipe {
 public:
  std::string name() const override { return "untrainable"; }
  std::string summary() const override { return "has no training data"; }
  void describe(Settings& /*settings*/) override {}
  std::unique_ptr<Task> build(const Settings& /*settings*/,
                              Purpose /*purpose*/) override {
    return std::make_unique<UntrainableTask>();
  }
};

TEST(TrainingParts, ARecipeWithoutTrainingDataIsRefused) {
  UntrainableRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({"--device=cpu"}, {});
  const cli::Session session(recipe, line, {}, {});
  EXPECT_EQ(testing::config_error(
                [&] { cli::make_step_loader(session, line.config()); }),
            "the recipe untrainable has no training data: data().train is null "
            "for Purpose::kTrain");
}

}  // namespace
}  // namespace lockstep
