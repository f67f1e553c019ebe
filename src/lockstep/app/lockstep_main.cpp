// `lockstep`: the command-line program. It does not link libtorch.
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "lockstep/app/version.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/error_file.h"
#include "lockstep/base/library_settings.h"
#include "lockstep/base/printable.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/front.h"
#include "lockstep/launch/options.h"
#include "lockstep/launch/plan.h"
#include "lockstep/launch/program.h"
#include "lockstep/launch/torch_search.h"
#include "lockstep/launch/worker_command.h"
#include "lockstep/launch/worker_program.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

int run(const std::string&, const Arguments& arguments) {
  const base::Environment environment = base::process_environment();
  const launch::RunOptions options =
      launch::parse_run_options(arguments, environment);
  if (options.help) {
    print(launch::run_help());
    return 0;
  }
  return launch::run_job(
      launch::make_plan(options, environment, launch::this_machine()));
}

// Replaces this process with the worker, with the library settings of a
// launched one.
[[noreturn]] void become_sole_worker(const std::string& worker,
                                     const Arguments& arguments) {
  for (const std::string& note : base::apply_library_settings()) {
    std::fprintf(stderr, "lockstep: %s\n", note.c_str());
  }
  launch::become_worker(
      worker, arguments,
      launch::with_torch(base::process_environment(), worker));
}

// train, eval, sample: launches and watches one worker per process.
int run_recipe(const std::string& name, const Arguments& arguments) {
  const launch::WorkerCommand command =
      launch::split_worker_command(name, arguments);
  if (launch::asks_for_launch_help(command)) {
    print(launch::worker_command_help(name));
    return 0;
  }
  const base::Environment environment = base::process_environment();
  const std::string worker =
      launch::find_worker(environment, launch::own_folder());
  if (launch::is_question(command)) {
    Arguments words = command.arguments;
    words.insert(words.begin(), name);
    become_sole_worker(worker, words);
  }
  return launch::run_job(launch::plan_worker_command(
      command, worker, launch::with_torch(environment, worker),
      launch::this_machine()));
}

// inspect, export: one worker, which this process becomes.
int hand_on(const std::string& name, const Arguments& arguments) {
  Arguments words = arguments;
  words.insert(words.begin(), name);
  become_sole_worker(
      launch::find_worker(base::process_environment(), launch::own_folder()),
      words);
}

// One worker, unless the launcher's options ask for several.
int prepare(const std::string& name, const Arguments& arguments) {
  const bool is_launched =
      !launch::split_worker_command(name, arguments).launch_options.empty();
  return is_launched ? run_recipe(name, arguments) : hand_on(name, arguments);
}

int print_version(const std::string&, const Arguments&) {
  print(app::version_text(base::process_environment(), launch::own_folder()));
  return 0;
}

int print_cmake_folder(const std::string&, const Arguments&) {
  print(app::cmake_folder(launch::own_folder()) + "\n");
  return 0;
}

int print_torch_folder(const std::string&, const Arguments&) {
  print(app::torch_folder(base::process_environment(), launch::own_folder()) +
        "\n");
  return 0;
}

int print_usage(const std::string&, const Arguments&);

struct CommandRow {
  const char* name;
  const char* usage;
  const char* help;
  int (*function)(const std::string& name, const Arguments& arguments);
};

constexpr auto kCommands = std::to_array<CommandRow>({
    {"train", "RECIPE [flags]", "train a recipe, on one GPU or several",
     run_recipe},
    {"eval", "RECIPE [flags]", "evaluate a checkpoint", run_recipe},
    {"sample", "RECIPE [flags]", "draw samples from a checkpoint", run_recipe},
    {"prepare", "...", "bring data into the form a recipe reads", prepare},
    {"inspect", "...", "show what a checkpoint holds", hand_on},
    {"export", "...", "write a checkpoint in another form", hand_on},
    {"run", "[options] PROGRAM [args...]",
     "start any program once per GPU or CPU slot", run},
    {"version", "", "print the versions of Lockstep, torch, CUDA and NCCL",
     print_version},
    {"--cmake-dir", "", "print the folder of the CMake package",
     print_cmake_folder},
    {"--torch-dir", "", "print the folder of the torch that is used",
     print_torch_folder},
    {"help", "", "print this text", print_usage},
});

int print_usage(const std::string&, const Arguments&) {
  constexpr size_t kIndent = 36;
  std::string text = "usage: lockstep COMMAND ...\n\ncommands:\n";
  for (const CommandRow& row : kCommands) {
    std::string left = std::string("  ") + row.name + " " + row.usage;
    left.resize(kIndent, ' ');
    text += left + row.help + "\n";
  }
  print(text +
        "\nlockstep run --help and lockstep train --help show the options of "
        "launching,\nlockstep train RECIPE --help the flags of a recipe.\n");
  return 0;
}

[[noreturn]] void unknown_command(const std::string& command) {
  Arguments known;
  for (const CommandRow& row : kCommands) known.push_back(row.name);
  const auto near = base::nearest(command, known);
  throw ConfigError("unknown command '" + command + "'; " +
                    (near ? "did you mean 'lockstep " + *near + "'?"
                          : "lockstep help lists the commands"));
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) {
    throw ConfigError("a command is missing; see lockstep help");
  }
  std::string name = arguments[0];
  if (name == "--version") name = "version";
  if (name == "--help" || name == "-h") name = "help";
  for (const CommandRow& row : kCommands) {
    if (name != row.name) continue;
    return row.function(name, {arguments.begin() + 1, arguments.end()});
  }
  unknown_command(name);
}

int report(const std::exception& error, int code) {
  base::report_to_launcher(error);
  std::fprintf(stderr, "lockstep: %s\n",
               base::printable_text(error.what()).c_str());
  return code;
}

}  // namespace
}  // namespace lockstep

int main(int count, char** values) {
  using namespace lockstep;
  try {
    return dispatch({values + 1, values + count});
  } catch (const launch::ProgramError& error) {
    return report(error, error.program_exit_code());
  } catch (const std::exception& error) {
    return report(error, exit_code(error));
  }
}
