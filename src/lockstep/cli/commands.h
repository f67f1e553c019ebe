// The commands on a recipe, for one rank of any number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/cli/command_line.h"
#include "lockstep/recipe.h"
#include "lockstep/track/console.h"

namespace lockstep::cli {

struct CommandContext {
  track::ConsoleOutput output = {};
  base::Environment environment = {};
  UsageConfig usage = {};
};

// Each takes the arguments after the recipe's name and returns the exit code.
// They throw Error; nothing is written before all input was checked.
int train_command(Recipe& recipe, const std::vector<std::string>& arguments,
                  const CommandContext& context);
int eval_command(Recipe& recipe, const std::vector<std::string>& arguments,
                 const CommandContext& context);
int sample_command(Recipe& recipe, const std::vector<std::string>& arguments,
                   const CommandContext& context);
int prepare_command(Recipe& recipe, const std::vector<std::string>& arguments,
                    const CommandContext& context);

using RecipeCommand = int (*)(Recipe&, const std::vector<std::string>&,
                              const CommandContext&);

// The command of that name: train, eval, sample or prepare; null for others.
RecipeCommand find_recipe_command(std::string_view name);

}  // namespace lockstep::cli
