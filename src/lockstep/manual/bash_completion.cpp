#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/manual/completion.h"
#include "lockstep/manual/completion_tables.h"

namespace lockstep::manual {
namespace {

std::string flag_words(const std::vector<Section>& sections) {
  std::vector<std::string> words;
  for (const Flag& flag : flags_of(sections)) {
    words.push_back("--" + flag.name);
    if (flag.has_negation) words.push_back("--no_" + flag.name);
  }
  return base::join(words, " ");
}

std::string names_text(const std::vector<std::string>& names) {
  return base::join(names, " ");
}

std::string flag_table(const Program& program) {
  std::string text =
      "_lockstep_flags() {  # COMMAND RECIPE\n  case \"$1\" in\n";
  for (const Command& command : program.commands) {
    if (command.sections.empty()) continue;
    text += fmt::format("    {}) echo {} ;;\n", command.name,
                        quoted(flag_words(command.sections)));
  }
  text += "  esac\n  case \"$1:$2\" in\n";
  for (const Command& command : program.commands) {
    for (const RecipeFlags& recipe : command.recipes) {
      if (recipe.sections.empty()) continue;
      text += fmt::format("    {}:{}) echo {} ;;\n", command.name, recipe.name,
                          quoted(flag_words(recipe.sections)));
    }
  }
  return text + "  esac\n}\n";
}

std::string value_table(const Program& program) {
  std::string text =
      "_lockstep_values() {  # RECIPE FLAG\n  case \"$1:$2\" in\n";
  for (const Values& values : values_of(program)) {
    text += fmt::format("    {}:--{}) echo {} ;;\n",
                        values.recipe.empty() ? "*" : values.recipe,
                        base::replace_all(values.flag, "-", "_"),
                        quoted(names_text(values.choices)));
  }
  return text + "  esac\n}\n";
}

// Bash breaks words at '=': "--flag=va" is three of them.
constexpr const char* kBody = R"shell(
_lockstep() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} recipe='' word
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "$_lockstep_commands" -- "$cur"))
    return
  fi
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for word in "${COMP_WORDS[@]:2:COMP_CWORD - 2}"; do
    if [[ " $_lockstep_recipes " == *" $word "* ]]; then
      recipe=$word
      break
    fi
  done
  if [[ $prev == --* ]]; then
    word=${prev#--}
    word=$(_lockstep_values "$recipe" "--${word//-/_}")
    if [[ -n $word ]]; then
      COMPREPLY=($(compgen -W "$word" -- "$cur"))
      return
    fi
  fi
  if [[ $cur == -* ]]; then
    word=$(_lockstep_flags "$command" "$recipe")
    COMPREPLY=($(compgen -W "$word" -- "$cur"))
  elif [[ $command == completion ]]; then
    COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur"))
  elif [[ -z $recipe && $prev != -* ]] &&
    [[ " $_lockstep_with_recipe " == *" $command "* ]]; then
    COMPREPLY=($(compgen -W "$_lockstep_recipes" -- "$cur"))
  fi
}

complete -o default -F _lockstep lockstep
)shell";

}  // namespace

std::string bash_completion(const Program& program) {
  std::vector<std::string> commands;
  std::vector<std::string> with_recipe;
  for (const Command& command : program.commands) {
    commands.push_back(command.name);
    if (!command.recipes.empty()) with_recipe.push_back(command.name);
  }
  std::vector<std::string> recipes;
  for (const RecipeFlags& recipe : recipes_of(program)) {
    recipes.push_back(recipe.name);
  }
  return "# Completions of lockstep for bash, made from its description of "
         "flags.\n" +
         fmt::format(
             "_lockstep_commands={}\n_lockstep_recipes={}\n"
             "_lockstep_with_recipe={}\n\n",
             quoted(names_text(commands)), quoted(names_text(recipes)),
             quoted(names_text(with_recipe))) +
         flag_table(program) + "\n" + value_table(program) + kBody;
}

}  // namespace lockstep::manual
