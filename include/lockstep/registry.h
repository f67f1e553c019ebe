// The recipes of this library, by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lockstep/export.h"
#include "lockstep/recipe.h"

namespace lockstep {

struct RecipeEntry {
  std::string_view name;
  std::unique_ptr<Recipe> (*make)();
};

LOCKSTEP_EXPORT std::span<const RecipeEntry> all_recipes();

// Throws ConfigError with the nearest name, or with all of them.
LOCKSTEP_EXPORT std::unique_ptr<Recipe> make_recipe(std::string_view name);

}  // namespace lockstep
