// The words of a description, as the completion scripts need them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/manual/description.h"

namespace lockstep::manual {

std::vector<Flag> flags_of(const std::vector<Section>& sections);

// The recipes of the first command that takes one.
std::vector<RecipeFlags> recipes_of(const Program& program);

// Flags with a fixed set of values. An empty recipe: the same for all.
struct Values {
  std::string recipe = {};
  std::string flag = {};
  std::vector<std::string> choices = {};
};

std::vector<Values> values_of(const Program& program);

// In single quotes, for bash and zsh.
std::string quoted(const std::string& text);

}  // namespace lockstep::manual
