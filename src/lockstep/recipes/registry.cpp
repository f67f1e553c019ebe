#include "lockstep/registry.h"

#include <array>
#include <string>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/recipes/atlas/atlas.h"
#include "lockstep/recipes/dit/dit.h"
#include "lockstep/recipes/jit/jit.h"
#include "lockstep/recipes/protein/protein.h"
#include "lockstep/recipes/scribble/scribble.h"
#include "lockstep/recipes/tiny/tiny.h"

namespace lockstep {
namespace {

template <typename Type>
std::unique_ptr<Recipe> make() {
  return std::make_unique<Type>();
}

constexpr std::array kRecipes = {
    RecipeEntry{"atlas", make<recipes::AtlasRecipe>},
    RecipeEntry{"dit", make<recipes::DitRecipe>},
    RecipeEntry{"jit", make<recipes::JitRecipe>},
    RecipeEntry{"protein", make<recipes::ProteinRecipe>},
    RecipeEntry{"scribble", make<recipes::ScribbleRecipe>},
    RecipeEntry{"tiny", make<recipes::TinyRecipe>},
};

}  // namespace

std::span<const RecipeEntry> all_recipes() { return kRecipes; }

std::unique_ptr<Recipe> make_recipe(std::string_view name) {
  std::vector<std::string> names;
  for (const RecipeEntry& entry : kRecipes) {
    if (entry.name == name) return entry.make();
    names.emplace_back(entry.name);
  }
  const auto near = base::nearest(name, names);
  throw ConfigError("unknown recipe '" + std::string(name) + "'; " +
                    (near ? "did you mean " + *near + "?"
                          : "the recipes are: " + base::join(names, ", ")));
}

}  // namespace lockstep
