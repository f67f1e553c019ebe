#include "lockstep/manual/completion_tables.h"

#include <algorithm>

#include "lockstep/base/strings.h"

namespace lockstep::manual {
namespace {

void add_values(const std::string& recipe, const std::vector<Section>& sections,
                std::vector<Values>& all) {
  for (const Flag& flag : flags_of(sections)) {
    if (flag.choices.empty()) continue;
    const bool is_known = std::ranges::any_of(all, [&](const Values& known) {
      return known.recipe == recipe && known.flag == flag.name;
    });
    if (!is_known) all.push_back({recipe, flag.name, flag.choices});
  }
}

}  // namespace

std::vector<Flag> flags_of(const std::vector<Section>& sections) {
  std::vector<Flag> flags;
  for (const Section& section : sections) {
    flags.insert(flags.end(), section.flags.begin(), section.flags.end());
  }
  return flags;
}

std::vector<RecipeFlags> recipes_of(const Program& program) {
  for (const Command& command : program.commands) {
    if (!command.recipes.empty()) return command.recipes;
  }
  return {};
}

std::vector<Values> values_of(const Program& program) {
  std::vector<Values> all;
  for (const Command& command : program.commands) {
    add_values("", command.sections, all);
    for (const RecipeFlags& recipe : command.recipes) {
      add_values(recipe.name, recipe.sections, all);
    }
  }
  return all;
}

std::string quoted(const std::string& text) {
  return "'" + base::replace_all(text, "'", "'\\''") + "'";
}

}  // namespace lockstep::manual
