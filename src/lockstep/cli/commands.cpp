#include "lockstep/cli/commands.h"

#include <array>
#include <utility>

namespace lockstep::cli {

RecipeCommand find_recipe_command(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, RecipeCommand>, 4>
      kCommands = {{{"train", train_command},
                    {"eval", eval_command},
                    {"sample", sample_command},
                    {"prepare", prepare_command}}};
  for (const auto& [known, command] : kCommands) {
    if (known == name) return command;
  }
  return nullptr;
}

}  // namespace lockstep::cli
