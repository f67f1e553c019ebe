#include "lockstep/app/recipe_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lockstep/config/flag_reader.h"
#include "lockstep/error.h"
#include "lockstep/registry.h"
#include "lockstep/settings.h"

namespace lockstep::app {
namespace {

using Words = std::vector<std::string>;

bool is_recipe(const std::string& word) {
  return std::ranges::any_of(all_recipes(), [&](const RecipeEntry& entry) {
    return entry.name == word;
  });
}

// The words that belong to no flag; no value when there is an error among them.
std::optional<Words> positionals(const Options& options, const Words& words) {
  try {
    return config::read_flags(options, words).positionals;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// Whether words[at] is the value of the flag before it.
bool is_value(const Options& options, const Words& words, size_t at) {
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(at);
  if (positionals(options, {words.begin(), end})) return false;
  const auto with_it = positionals(options, {words.begin(), end + 1});
  return with_it && with_it->empty();
}

std::optional<size_t> find_name(const Words& words) {
  if (!words.empty() && !words[0].starts_with('-')) return 0;
  for (size_t at = 0; at < words.size(); ++at) {
    if (!is_recipe(words[at])) continue;
    Settings settings;
    const auto recipe = make_recipe(words[at]);
    recipe->describe(settings);
    if (!is_value(settings.options, words, at)) return at;
  }
  return std::nullopt;
}

// A word that is neither a flag, nor a value of one, is meant as a recipe.
[[noreturn]] void refuse(const std::string& command, const Words& words) {
  const Settings settings;
  const auto rest = positionals(settings.options, words);
  if (rest && !rest->empty()) make_recipe(rest->front());
  throw ConfigError(fmt::format(
      "lockstep {0} needs a recipe: lockstep {0} RECIPE [flags]\n\n{1}",
      command, recipes_text()));
}

}  // namespace

RecipeWords find_recipe(const std::string& command, const Words& words) {
  const auto at = find_name(words);
  if (!at) refuse(command, words);
  RecipeWords found{.recipe = make_recipe(words[*at]), .arguments = words};
  found.arguments.erase(found.arguments.begin() +
                        static_cast<std::ptrdiff_t>(*at));
  return found;
}

std::string recipes_text() {
  size_t width = 0;
  for (const RecipeEntry& entry : all_recipes()) {
    width = std::max(width, entry.name.size());
  }
  std::string text = "recipes:\n";
  for (const RecipeEntry& entry : all_recipes()) {
    text += fmt::format("  {:{}}  {}\n", entry.name, width,
                        entry.make()->summary());
  }
  return text;
}

}  // namespace lockstep::app
