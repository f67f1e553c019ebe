#include "lockstep/registry.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(Registry, RecipesHaveTheNamesOfTheirRows) {
  for (const RecipeEntry& entry : all_recipes()) {
    const auto recipe = entry.make();
    EXPECT_EQ(recipe->name(), entry.name);
    EXPECT_FALSE(recipe->summary().empty()) << entry.name;
    EXPECT_EQ(make_recipe(entry.name)->name(), entry.name);
  }
}

// `lockstep export` finds the weights of any recipe's checkpoint so.
TEST(Registry, ADescriptionSaysWhereCheckpointsKeepTheModel) {
  for (const RecipeEntry& entry : all_recipes()) {
    Settings settings;
    const auto recipe = entry.make();
    recipe->describe(settings);
    ASSERT_FALSE(settings.checkpoint.model.empty()) << entry.name;
    for (const ModelPart& part : settings.checkpoint.model) {
      EXPECT_FALSE(part.key.empty()) << entry.name;
    }
    EXPECT_NE(settings.files.checkpoint.find(".pt"), std::string::npos);
  }
}

TEST(Registry, AnUnknownNameIsRefusedWithTheNearest) {
  try {
    make_recipe("tyni");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean tiny?"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
