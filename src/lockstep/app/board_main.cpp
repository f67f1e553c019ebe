// `lockstep-board`: the commands `lockstep runs` and `lockstep board`, over run
// folders. A separate program, so that the launcher stays small; it does not
// link libtorch.
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/base/printable.h"
#include "lockstep/base/terminal.h"
#include "lockstep/board/board_command.h"
#include "lockstep/error.h"
#include "lockstep/runs/runs_command.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;

// Trainings on this machine come first.
constexpr int kNiceness = 10;

plot::TerminalAbility stdout_ability() {
  const base::Environment environment = base::process_environment();
  if (isatty(STDOUT_FILENO) == 0) return {};
  const int columns = base::terminal_columns(STDOUT_FILENO, environment);
  return plot::terminal_ability(environment, columns == 0 ? 80 : columns);
}

void list_runs(const Arguments& arguments) {
  const runs::RunsOptions options = runs::parse_runs_options(arguments);
  base::write_all(STDOUT_FILENO, options.help ? runs::runs_help()
                                              : runs::run_runs_command(
                                                    options, stdout_ability(),
                                                    base::unix_seconds()));
}

// Readable when the program shall end.
base::FileDescriptor stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&signals, number);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return base::FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC));
}

void serve(const Arguments& arguments) {
  const board::BoardOptions options = board::parse_board_options(arguments);
  if (options.help) {
    base::write_all(STDOUT_FILENO, board::board_help());
    return;
  }
  const base::FileDescriptor stop = stop_signals();
  [[maybe_unused]] const int niceness = nice(kNiceness);
  board::Board served(options);
  base::write_all(STDOUT_FILENO, base::printable_text(served.greeting()));
  served.run(stop.get());
}

void run_command(const Arguments& words) {
  const std::string command = words.empty() ? "" : words[0];
  const Arguments rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (command == "runs") return list_runs(rest);
  if (command == "board") return serve(rest);
  throw ConfigError("type lockstep runs or lockstep board");
}

}  // namespace
}  // namespace lockstep

int main(int count, char** values) {
  const std::string name =
      count > 1 ? std::string("lockstep ") + values[1] : "lockstep-board";
  try {
    lockstep::run_command({values + 1, values + count});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n",
                 lockstep::base::printable_line(name).c_str(),
                 lockstep::base::printable_text(error.what()).c_str());
    return lockstep::exit_code(error);
  }
}
