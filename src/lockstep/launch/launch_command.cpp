#include "lockstep/launch/launch_command.h"

#include "lockstep/error.h"
#include "lockstep/launch/program_flags.h"

namespace lockstep::launch {

RunOptions parse_launch_options(std::span<const std::string> arguments,
                                const base::Environment& environment) {
  RunOptions options = parse_run_options(arguments, environment);
  if (options.help || options.use_env) return options;
  if (options.no_python) {
    throw ConfigError(
        "lockstep launch --no-python needs --use-env: without it the program "
        "would get --local-rank=N as its first argument");
  }
  options.arguments.insert(is_own_worker(options) ? options.arguments.end()
                                                  : options.arguments.begin(),
                           "--local-rank=${local_rank}");
  return options;
}

std::string launch_help() {
  return "usage: lockstep launch [options] PROGRAM [args...]\n\n"
         "As lockstep run, for programs written for torch.distributed.launch: "
         "without\n"
         "--use-env PROGRAM also gets --local-rank=N. Its options are those "
         "of\n"
         "lockstep run --help.\n";
}

}  // namespace lockstep::launch
