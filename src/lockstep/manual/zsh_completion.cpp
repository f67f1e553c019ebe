#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/manual/completion.h"
#include "lockstep/manual/completion_tables.h"

namespace lockstep::manual {
namespace {

// An entry of _describe: "name:meaning".
std::string described(const std::string& name, const std::string& meaning) {
  return quoted(base::replace_all(name, ":", "\\:") + ":" + meaning);
}

std::string described_flags(const std::vector<Section>& sections) {
  std::string text;
  for (const Flag& flag : flags_of(sections)) {
    text += "        " + described("--" + flag.name, flag.help) + "\n";
    if (flag.has_negation) {
      text += "        " + described("--no_" + flag.name, "not: " + flag.help) +
              "\n";
    }
  }
  return text;
}

std::string list(const std::string& variable,
                 const std::vector<std::string>& entries) {
  std::string text = fmt::format("  {}=(\n", variable);
  for (const std::string& entry : entries) text += "    " + entry + "\n";
  return text + "  )\n";
}

std::string flag_cases(const Program& program) {
  std::string text = "  case $command in\n";
  for (const Command& command : program.commands) {
    if (command.sections.empty()) continue;
    text += fmt::format("    {})\n      flags=(\n{}      )\n      ;;\n",
                        command.name, described_flags(command.sections));
  }
  text += "  esac\n  case $command:$recipe in\n";
  for (const Command& command : program.commands) {
    for (const RecipeFlags& recipe : command.recipes) {
      if (recipe.sections.empty()) continue;
      text += fmt::format("    {}:{})\n      flags+=(\n{}      )\n      ;;\n",
                          command.name, recipe.name,
                          described_flags(recipe.sections));
    }
  }
  return text + "  esac\n";
}

std::string value_cases(const Program& program) {
  std::string text = "  case $recipe:$flag in\n";
  for (const Values& values : values_of(program)) {
    text += fmt::format("    {}:--{}) values=({}) ;;\n",
                        values.recipe.empty() ? "*" : values.recipe,
                        base::replace_all(values.flag, "-", "_"),
                        base::join(values.choices, " "));
  }
  return text + "  esac\n";
}

constexpr const char* kBegin = R"shell(#compdef lockstep
# Completions of lockstep for zsh, made from its description of flags.

_lockstep() {
  local command=$words[2] recipe='' flag='' word
  local -a commands recipes with_recipe flags values
)shell";

constexpr const char* kFind = R"shell(  if (( CURRENT == 2 )); then
    _describe -t commands command commands
    return
  fi
  for word in $words[3,CURRENT-1]; do
    if (( ${recipes[(I)$word:*]} )); then
      recipe=$word
      break
    fi
  done
  if [[ $PREFIX == --*=* ]]; then
    flag=${PREFIX%%=*}
    compset -P 1 '*='
  elif [[ $words[CURRENT-1] == --* ]]; then
    flag=$words[CURRENT-1]
  fi
  flag=${flag:+--${${flag#--}//-/_}}
)shell";

constexpr const char* kEnd = R"shell(  if (( $#values )); then
    compadd -a values
  elif [[ $PREFIX == -* ]]; then
    _describe -o -t flags flag flags
  elif [[ $command == completion ]]; then
    compadd bash zsh fish
  elif [[ -z $recipe && $words[CURRENT-1] != -* ]] &&
    (( ${with_recipe[(I)$command]} )); then
    _describe -t recipes recipe recipes
  else
    _files
  fi
}

_lockstep "$@"
)shell";

}  // namespace

std::string zsh_completion(const Program& program) {
  std::vector<std::string> commands;
  std::vector<std::string> with_recipe;
  for (const Command& command : program.commands) {
    commands.push_back(described(command.name, command.summary));
    if (!command.recipes.empty()) with_recipe.push_back(command.name);
  }
  std::vector<std::string> recipes;
  for (const RecipeFlags& recipe : recipes_of(program)) {
    recipes.push_back(described(recipe.name, recipe.summary));
  }
  return kBegin + list("commands", commands) + list("recipes", recipes) +
         list("with_recipe", with_recipe) + kFind + flag_cases(program) +
         value_cases(program) + kEnd;
}

}  // namespace lockstep::manual
