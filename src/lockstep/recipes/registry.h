// The recipes by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lockstep/recipe.h"

namespace lockstep {

struct RecipeEntry {
  std::string_view name;
  std::unique_ptr<Recipe> (*make)();
};

std::span<const RecipeEntry> recipes();

// Throws ConfigError with the nearest name, or with all of them.
std::unique_ptr<Recipe> make_recipe(std::string_view name);

}  // namespace lockstep
