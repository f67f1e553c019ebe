// `lockstep-worker`: one rank. It links libtorch; `lockstep run` starts it once
// per process.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/app/checkpoint_commands.h"
#include "lockstep/app/description.h"
#include "lockstep/app/flags_document.h"
#include "lockstep/app/manual_files.h"
#include "lockstep/app/process_context.h"
#include "lockstep/app/recipe_words.h"
#include "lockstep/app/spare.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/terminal.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/probe_command.h"
#include "lockstep/error.h"
#include "lockstep/lockstep.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;

constexpr const char* kUsage =
    "usage: lockstep-worker COMMAND\n\n"
    "commands:\n"
    "  train RECIPE [flags]   train; lockstep train RECIPE starts several\n"
    "  eval RECIPE [flags]    evaluate a checkpoint\n"
    "  sample RECIPE [flags]  sample from a checkpoint\n"
    "  prepare RECIPE [...]   make a recipe's data ready\n"
    "  inspect FILE...        list what checkpoints hold\n"
    "  export FROM TO         take the weights out of a checkpoint\n"
    "  recipes                list the recipes\n"
    "  flags                  print all flags of all recipes as Markdown\n"
    "  probe ...              measure something for lockstep doctor\n"
    "  manual FOLDER          write man pages and shell completions there\n"
    "  version                print the version\n"
    "  help                   print this text\n\n"
    "lockstep-worker train RECIPE --help shows a recipe's flags.\n";

void print(std::string_view text) { base::write_all(STDOUT_FILENO, text); }

int on_recipe(cli::RecipeCommand command, const Arguments& arguments) {
  const app::RecipeWords found =
      app::find_recipe(arguments[0], {arguments.begin() + 1, arguments.end()});
  cli::CommandContext context = app::process_context();
  context.usage.launching = app::launching_rows();
  context.usage.launch_flags = app::launch_flags();
  return command(*found.recipe, found.arguments, context);
}

// For lockstep doctor.
int probe(const Arguments& arguments) {
  const std::string what = arguments.size() > 1 ? arguments[1] : "";
  if (what == "exchange" && arguments.size() == 3) {
    return cli::probe_exchange(arguments[2], app::process_context());
  }
  if (what == "copies" && arguments.size() == 2) {
    return cli::probe_copies(app::process_context());
  }
  if (what == "recipe" && arguments.size() > 2) {
    return on_recipe(cli::probe_recipe,
                     {arguments.begin() + 1, arguments.end()});
  }
  if (what == "checkpoints" && arguments.size() == 4) {
    return cli::probe_checkpoints(arguments[2], arguments[3],
                                  app::process_context());
  }
  throw ConfigError(
      "usage: lockstep-worker probe exchange cpu|cuda, probe copies, probe "
      "recipe RECIPE [flags] or probe checkpoints FILE FILE; lockstep doctor "
      "and lockstep verify-resume run them");
}

int write_manual(const Arguments& arguments) {
  if (arguments.size() != 2) {
    throw ConfigError("usage: lockstep-worker manual FOLDER");
  }
  app::write_manual(arguments[1]);
  return 0;
}

int dispatch(const Arguments& arguments) {
  const std::string command = arguments.empty() ? "help" : arguments[0];
  if (const cli::RecipeCommand run = cli::find_recipe_command(command)) {
    return on_recipe(run, arguments);
  }
  if (command == "inspect") {
    print(app::inspect_checkpoint({arguments.begin() + 1, arguments.end()}));
    return 0;
  }
  if (command == "export") {
    print(app::export_checkpoint({arguments.begin() + 1, arguments.end()}));
    return 0;
  }
  if (command == "recipes") {
    print(app::recipes_text());
    return 0;
  }
  if (command == "probe") return probe(arguments);
  if (command == "manual") return write_manual(arguments);
  if (command == "flags") {
    print(app::flags_document());
    return 0;
  }
  if (command == "version" || command == "--version") {
    print("lockstep-worker " + std::string(version()) + "\n");
    return 0;
  }
  if (command == "help" || command == "--help" || command == "-h") {
    print(kUsage);
    return 0;
  }
  const Arguments known = {"train",   "eval",   "sample",  "prepare",
                           "inspect", "export", "recipes", "flags",
                           "manual",  "probe",  "version", "help"};
  const auto near = base::nearest(command, known);
  throw ConfigError("unknown command '" + command + "'; " +
                    (near ? "did you mean 'lockstep-worker " + *near + "'?"
                          : "lockstep-worker help lists them"));
}

}  // namespace
}  // namespace lockstep

int main(int count, char** values) {
  const auto arguments = lockstep::app::arguments_of(count, values);
  int code = 0;
  const int failed =
      lockstep::run_program([&] { code = lockstep::dispatch(arguments); });
  return failed != 0 ? failed : code;
}
