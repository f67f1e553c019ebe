// The recipe among the words of a command line, which flags may precede.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/recipe.h"

namespace lockstep::app {

struct RecipeWords {
  std::unique_ptr<Recipe> recipe;
  std::vector<std::string> arguments;  // All words but the recipe's name.
};

// "--save_dir dit jit --lr 1": jit, because dit is the value of a flag. Throws
// ConfigError with the nearest name for an unknown recipe, and with the list of
// recipes when there is none. `command` is for messages: "train".
RecipeWords find_recipe(const std::string& command,
                        const std::vector<std::string>& words);

// The recipes with one line each.
std::string recipes_text();

}  // namespace lockstep::app
