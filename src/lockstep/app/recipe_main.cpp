#include <unistd.h>

#include <string>
#include <vector>

#include "lockstep/app/process_context.h"
#include "lockstep/base/files.h"
#include "lockstep/base/terminal.h"
#include "lockstep/cli/commands.h"
#include "lockstep/error.h"
#include "lockstep/program.h"

namespace lockstep {
namespace {

int dispatch(std::vector<std::string> words, Recipe& recipe) {
  std::string command = "train";
  if (!words.empty() && !words[0].starts_with("-")) {
    command = words[0];
    words.erase(words.begin());
    if (!words.empty() && words[0] == recipe.name()) {
      words.erase(words.begin());
    }
  }
  const CommandContext context = process_context();
  if (command == "train") return train_command(recipe, words, context);
  if (command == "eval") return eval_command(recipe, words, context);
  if (command == "sample") return sample_command(recipe, words, context);
  if (command == "prepare") return prepare_command(recipe, words, context);
  throw ConfigError("unknown command '" + command +
                    "'; this program knows train (the default), eval, "
                    "sample and prepare, each with its flags behind it");
}

}  // namespace

int recipe_main(int count, char** values, Recipe& recipe) {
  int code = 0;
  const int failed = run_program(
      [&] { code = dispatch({values + 1, values + count}, recipe); });
  return failed != 0 ? failed : code;
}

CommandContext process_context() {
  const Environment environment = process_environment();
  return {
      .output = {
          .out = [](std::string_view text) { write_all(STDOUT_FILENO, text); },
          .err = [](std::string_view text) { write_all(STDERR_FILENO, text); },
          .columns =
              [environment] {
                return terminal_columns(STDOUT_FILENO, environment);
              },
          .is_utf8 = has_utf8_locale(environment)},
      .environment = environment};
}

}  // namespace lockstep
