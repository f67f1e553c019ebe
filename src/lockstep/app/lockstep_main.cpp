// `lockstep`: the program users type. It links no libtorch.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/front.h"
#include "lockstep/launch/options.h"
#include "lockstep/launch/plan.h"
#include "lockstep/launch/program.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;

constexpr const char* kUsage =
    "usage: lockstep COMMAND ...\n\n"
    "commands:\n"
    "  run [options] PROGRAM [args...]  start a program once per GPU or CPU "
    "slot\n"
    "  version                          print the version\n"
    "  help                             print this text\n\n"
    "lockstep run --help shows the options of run.\n";

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

int run(const Arguments& arguments) {
  const Environment environment = process_environment();
  const RunOptions options = parse_run_options(arguments, environment);
  if (options.help) {
    print(run_help());
    return 0;
  }
  return run_job(make_plan(options, environment, this_machine()));
}

[[noreturn]] void unknown_command(const std::string& command) {
  const Arguments known = {"run", "version", "help"};
  const auto near = nearest(command, known);
  throw ConfigError("unknown command '" + command + "'; " +
                    (near ? "did you mean 'lockstep " + *near + "'?"
                          : "the commands are run, version and help"));
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) {
    throw ConfigError("a command is missing; see lockstep help");
  }
  const std::string& command = arguments[0];
  if (command == "run") return run({arguments.begin() + 1, arguments.end()});
  if (command == "version" || command == "--version") {
    print("lockstep " LOCKSTEP_VERSION "\n");
    return 0;
  }
  if (command == "help" || command == "--help" || command == "-h") {
    print(kUsage);
    return 0;
  }
  unknown_command(command);
}

int report(const std::exception& error, int code) {
  std::fprintf(stderr, "lockstep: %s\n", error.what());
  return code;
}

}  // namespace
}  // namespace lockstep

int main(int count, char** values) {
  using namespace lockstep;
  try {
    return dispatch({values + 1, values + count});
  } catch (const ProgramError& error) {
    return report(error, error.program_exit_code());
  } catch (const std::exception& error) {
    return report(error, exit_code(error));
  }
}
