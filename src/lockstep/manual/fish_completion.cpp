#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/manual/completion.h"
#include "lockstep/manual/completion_tables.h"

namespace lockstep::manual {
namespace {

// Fish knows \' and \\ inside of single quotes.
std::string fish_quoted(const std::string& text) {
  const std::string escaped = base::replace_all(text, "\\", "\\\\");
  return "'" + base::replace_all(escaped, "'", "\\'") + "'";
}

std::string flag_line(const std::string& condition, const std::string& name,
                      const Flag& flag) {
  std::string text =
      fmt::format("complete -c lockstep -n {} -l {} -d {}",
                  fish_quoted(condition), name, fish_quoted(flag.help));
  if (!flag.choices.empty()) {
    text +=
        fmt::format(" -x -a {}", fish_quoted(base::join(flag.choices, " ")));
  } else if (!flag.value.empty()) {
    text += " -r";
  }
  return text + "\n";
}

std::string flag_lines(const std::string& condition,
                       const std::vector<Section>& sections) {
  std::string text;
  for (const Flag& flag : flags_of(sections)) {
    text += flag_line(condition, flag.name, flag);
    if (!flag.has_negation) continue;
    text += flag_line(condition, "no_" + flag.name,
                      {.name = flag.name, .help = "not: " + flag.help});
  }
  return text;
}

std::string recipe_lines(const Command& command) {
  const std::string seen =
      fmt::format("__fish_seen_subcommand_from {}", command.name);
  std::vector<std::string> names;
  for (const RecipeFlags& recipe : command.recipes) {
    names.push_back(recipe.name);
  }
  std::string text;
  for (const RecipeFlags& recipe : command.recipes) {
    text += fmt::format(
        "complete -c lockstep -n {} -f -a {} -d {}\n",
        fish_quoted(fmt::format("{}; and not __fish_seen_subcommand_from {}",
                                seen, base::join(names, " "))),
        recipe.name, fish_quoted(recipe.summary));
    text += flag_lines(fmt::format("{}; and __fish_seen_subcommand_from {}",
                                   seen, recipe.name),
                       recipe.sections);
  }
  return text;
}

}  // namespace

std::string fish_completion(const Program& program) {
  std::string text =
      "# Completions of lockstep for fish, made from its description of "
      "flags.\n";
  for (const Command& command : program.commands) {
    text += fmt::format(
        "complete -c lockstep -n __fish_use_subcommand -f -a {} -d {}\n",
        command.name, fish_quoted(command.summary));
  }
  text +=
      "complete -c lockstep -n '__fish_seen_subcommand_from completion' -f -a "
      "'bash zsh fish'\n";
  for (const Command& command : program.commands) {
    text +=
        flag_lines(fmt::format("__fish_seen_subcommand_from {}", command.name),
                   command.sections);
    text += recipe_lines(command);
  }
  return text;
}

}  // namespace lockstep::manual
