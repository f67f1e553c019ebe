#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/app/process_context.h"
#include "lockstep/app/spare.h"
#include "lockstep/cli/commands.h"
#include "lockstep/error.h"
#include "lockstep/program.h"
#include "lockstep/track/standard_streams.h"

namespace lockstep {
namespace {

int dispatch(const std::string& program, std::vector<std::string> words,
             Recipe& recipe) {
  std::string command = "train";
  if (!words.empty() && !words[0].starts_with("-")) {
    command = words[0];
    words.erase(words.begin());
    if (!words.empty() && words[0] == recipe.name()) {
      words.erase(words.begin());
    }
  }
  cli::CommandContext context = app::process_context();
  // `lockstep` asks its worker, which this program may be.
  if (command == "recipes") {
    context.output.out("recipes:\n  " + recipe.name() + "  " +
                       recipe.summary() + "\n");
    return 0;
  }
  const cli::RecipeCommand run = cli::find_recipe_command(command);
  if (run == nullptr) {
    throw ConfigError("unknown command '" + command +
                      "'; this program knows train (the default), eval, "
                      "sample and prepare, each with its flags behind it");
  }
  context.usage.program = program;
  return run(recipe, words, context);
}

}  // namespace

int recipe_main(int count, char** values, Recipe& recipe) {
  const auto words = app::arguments_of(count, values);
  int code = 0;
  const int failed = run_program([&] {
    const std::string program =
        std::filesystem::path(values[0]).filename().string();
    code = dispatch(program, words, recipe);
  });
  return failed != 0 ? failed : code;
}

cli::CommandContext app::process_context() {
  const base::Environment environment = base::process_environment();
  return {.output = track::standard_streams(environment),
          .environment = environment};
}

}  // namespace lockstep
