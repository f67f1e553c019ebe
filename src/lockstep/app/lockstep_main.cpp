// `lockstep`: the command-line program. It does not link libtorch.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/app/version.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/error_file.h"
#include "lockstep/base/files.h"
#include "lockstep/base/library_settings.h"
#include "lockstep/base/printable.h"
#include "lockstep/base/strings.h"
#include "lockstep/doctor/doctor_command.h"
#include "lockstep/doctor/verify_resume.h"
#include "lockstep/error.h"
#include "lockstep/launch/cause.h"
#include "lockstep/launch/commands.h"
#include "lockstep/launch/completion_script.h"
#include "lockstep/launch/front.h"
#include "lockstep/launch/launch_command.h"
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

int run_with_local_rank(const std::string&, const Arguments& arguments) {
  const base::Environment environment = base::process_environment();
  const launch::RunOptions options =
      launch::parse_launch_options(arguments, environment);
  if (options.help) {
    print(launch::launch_help());
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
  launch::become_program(
      worker, arguments,
      launch::with_torch(base::process_environment(), worker));
}

// Below a help text: what the worker lists, where there is one.
int list_recipes() {
  print("\n");
  std::fflush(stdout);
  try {
    const base::Environment environment = base::process_environment();
    const std::string worker =
        launch::find_worker(environment, launch::own_folder());
    launch::become_program(worker, Arguments{"recipes"},
                           launch::with_torch(environment, worker));
  } catch (const std::exception& error) {
    print(std::string("recipes: ") + error.what() + "\n");
    return 0;
  }
}

// train, eval, sample: launches and watches one worker per process.
int run_recipe(const std::string& name, const Arguments& arguments) {
  const launch::WorkerCommand command =
      launch::split_worker_command(name, arguments);
  if (launch::asks_for_launch_help(command)) {
    print(launch::worker_command_help(name));
    return list_recipes();
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

// recipes, inspect, export: one worker, which this process becomes.
int hand_on(const std::string& name, const Arguments& arguments) {
  Arguments words = arguments;
  words.insert(words.begin(), name);
  become_sole_worker(
      launch::find_worker(base::process_environment(), launch::own_folder()),
      words);
}

// One worker, unless the launcher's options ask for several.
int prepare(const std::string& name, const Arguments& arguments) {
  const launch::WorkerCommand command =
      launch::split_worker_command(name, arguments);
  const bool is_launched =
      !command.launch_options.empty() || launch::asks_for_launch_help(command);
  return is_launched ? run_recipe(name, arguments) : hand_on(name, arguments);
}

// Becomes lockstep-plot.
int plot(const std::string&, const Arguments& arguments) {
  launch::become_program(
      launch::find_companion("lockstep-plot", base::process_environment(),
                             launch::own_folder()),
      arguments, base::process_environment());
}

// runs, board: becomes lockstep-board.
int look_at_runs(const std::string& name, const Arguments& arguments) {
  Arguments words = arguments;
  words.insert(words.begin(), name);
  launch::become_program(
      launch::find_companion("lockstep-board", base::process_environment(),
                             launch::own_folder()),
      words, base::process_environment());
}

int examine(const std::string&, const Arguments& arguments) {
  return doctor::doctor_command(
      arguments, base::process_environment(),
      [](std::string_view text) { base::write_all(STDOUT_FILENO, text); });
}

int verify_resume(const std::string&, const Arguments& arguments) {
  return doctor::verify_resume_command(
      arguments, base::process_environment(),
      [](std::string_view text) { base::write_all(STDOUT_FILENO, text); });
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

int dispatch(const Arguments& arguments);

// `lockstep help train tiny` is `lockstep train tiny --help`. Below the usage
// follow the recipes, where a worker is installed, which lists them.
int print_usage(const std::string&, const Arguments& arguments) {
  if (!arguments.empty() && !arguments[0].starts_with('-') &&
      arguments[0] != "help") {
    Arguments words = arguments;
    words.emplace_back("--help");
    return dispatch(words);
  }
  print(launch::commands_help());
  return list_recipes();
}

// The script that was made with the programs.
int print_completion(const std::string&, const Arguments& arguments) {
  print(launch::completion_script(arguments, launch::own_folder()));
  return 0;
}

using CommandFunction = int (*)(const std::string& name,
                                const Arguments& arguments);

// In the order of launch::commands().
constexpr auto kFunctions =
    std::to_array<std::pair<std::string_view, CommandFunction>>({
        {"train", run_recipe},
        {"eval", run_recipe},
        {"sample", run_recipe},
        {"prepare", prepare},
        {"recipes", hand_on},
        {"inspect", hand_on},
        {"export", hand_on},
        {"plot", plot},
        {"runs", look_at_runs},
        {"board", look_at_runs},
        {"doctor", examine},
        {"verify-resume", verify_resume},
        {"run", run},
        {"launch", run_with_local_rank},
        {"completion", print_completion},
        {"version", print_version},
        {"--cmake-dir", print_cmake_folder},
        {"--torch-dir", print_torch_folder},
        {"help", print_usage},
    });

[[noreturn]] void unknown_command(const std::string& command) {
  Arguments known;
  for (const launch::Command& row : launch::commands()) {
    known.push_back(row.name);
  }
  const auto near = base::nearest(command, known);
  throw ConfigError("unknown command '" + command + "'; " +
                    (near ? "did you mean 'lockstep " + *near + "'?"
                          : "lockstep help lists the commands"));
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) return print_usage("help", {});
  std::string name = arguments[0];
  if (name == "--version") name = "version";
  if (name == "--help" || name == "-h") name = "help";
  for (const auto& [known, function] : kFunctions) {
    if (name != known) continue;
    return function(name, {arguments.begin() + 1, arguments.end()});
  }
  unknown_command(name);
}

int report(const std::exception& error, int code) {
  base::report_to_launcher(error);
  std::fprintf(stderr, "lockstep: %s\n",
               base::printable_text(error.what()).c_str());
  if (const auto verdict = launch::verdict_of_message(error.what())) {
    std::fputs(launch::verdict_text(*verdict).c_str(), stderr);
  }
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
