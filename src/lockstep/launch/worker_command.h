// `lockstep train RECIPE ...`: which of its words are the launcher's and which
// the worker's.
//
// `lockstep train jit --nproc 2 --epochs 3` is
// `lockstep run --nproc-per-node 2 lockstep-worker train jit --epochs 3`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/launch/option_table.h"
#include "lockstep/launch/plan.h"

namespace lockstep::launch {

struct WorkerCommand {
  std::string name;                         // train, eval or sample
  std::vector<std::string> launch_options;  // for parse_run_options()
  std::vector<std::string> arguments;       // of the worker, behind the name
};

// Takes the long options of `lockstep run` out, wherever they stand; those
// about Python programs and --help stay. --timeout goes to both. The first --
// is dropped and everything behind it is the worker's. Throws ConfigError when
// an option lacks its value.
WorkerCommand split_worker_command(const std::string& name,
                                   std::span<const std::string> arguments);

// `lockstep train --help`: about launching, not about a recipe.
bool asks_for_launch_help(const WorkerCommand& command);

// --help, --help-all or --print-config of a recipe, or no recipe at all: one
// worker answers and no job is started.
bool is_question(const WorkerCommand& command);

std::string worker_command_help(const std::string& name);

// The options of `lockstep run` that `lockstep train` takes, too.
std::vector<const RunOption*> worker_command_options();

// Those that a recipe's help shows.
std::vector<const RunOption*> most_used_options();

// Unlike in `lockstep run`, `auto` means 1 where there is no GPU: processes
// that share the cores do not train faster. GPUs that stay idle only by default
// are noted. Throws as make_plan() does.
Plan plan_worker_command(const WorkerCommand& command,
                         const std::string& worker,
                         const base::Environment& environment,
                         const Machine& machine);

}  // namespace lockstep::launch
