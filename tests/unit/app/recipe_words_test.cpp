#include "lockstep/app/recipe_words.h"

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

// "dit: --lr 1", or the error.
std::string found_in(const Words& words) {
  try {
    const app::RecipeWords found = app::find_recipe("train", words);
    return found.recipe->name() + ": " + base::join(found.arguments, " ");
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(RecipeWords, TheRecipeComesFirstOrBehindFlags) {
  EXPECT_EQ(found_in({"dit", "--lr", "1"}), "dit: --lr 1");
  EXPECT_EQ(found_in({"--lr", "1", "dit"}), "dit: --lr 1");
  EXPECT_EQ(found_in({"--save_dir=x", "dit", "--lr=1"}),
            "dit: --save_dir=x --lr=1");
  EXPECT_EQ(found_in({"--overwrite", "tiny"}), "tiny: --overwrite");
  EXPECT_EQ(found_in({"--help", "tiny"}), "tiny: --help");
}

TEST(RecipeWords, TheValueOfAFlagIsNotTheRecipe) {
  EXPECT_EQ(found_in({"--save_dir", "dit", "jit"}), "jit: --save_dir dit");
  EXPECT_EQ(found_in({"--save_dir", "tiny", "tiny", "--width", "4"}),
            "tiny: --save_dir tiny --width 4");
  testing::expect_in(found_in({"--save_dir", "dit"}), "needs a recipe");
}

TEST(RecipeWords, FlagsOfTheRecipeMayStandBeforeIt) {
  EXPECT_EQ(found_in({"--width", "4", "tiny"}), "tiny: --width 4");
  EXPECT_EQ(found_in({"--wandb_tags", "a", "b", "tiny"}),
            "tiny: --wandb_tags a b");
}

TEST(RecipeWords, AWrongFlagIsLeftToTheRecipe) {
  EXPECT_EQ(found_in({"--bogus", "tiny"}), "tiny: --bogus");
}

TEST(RecipeWords, UnknownRecipesAreRefusedWithTheNearest) {
  testing::expect_in(found_in({"dti"}), "did you mean dit?");
  testing::expect_in(found_in({"--lr", "1", "tyni"}), "did you mean tiny?");
}

TEST(RecipeWords, WithoutARecipeTheyAreListed) {
  for (const Words& words : {Words{}, Words{"--lr", "1"}}) {
    const std::string text = found_in(words);
    testing::expect_in(text, "lockstep train needs a recipe");
    testing::expect_in(text, "  tiny      image classifier");
    testing::expect_in(text, "  scribble  segmentation");
  }
}

}  // namespace
}  // namespace lockstep
