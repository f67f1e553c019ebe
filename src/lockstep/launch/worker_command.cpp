#include "lockstep/launch/worker_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/launch/gpus.h"
#include "lockstep/launch/option_table.h"
#include "lockstep/launch/program_flags.h"

namespace lockstep::launch {
namespace {

// They say what PROGRAM is, which is fixed here, or mean the recipe.
constexpr std::array<std::string_view, 4> kNotOfTheLauncher = {
    "help", "module", "no-python", "run-path"};

// In the help of a recipe.
constexpr std::array<std::string_view, 4> kMostUsed = {
    "nproc", "share-gpus", "max-restarts", "log-dir"};

// The worker limits its collectives by it as well.
constexpr std::string_view kOfBoth = "timeout";

std::string_view name_of(std::string_view argument) {
  return argument.substr(2, argument.find('=') - 2);
}

// The launcher's option that a word is, else nullptr.
const RunOption* find_launch_option(std::string_view argument) {
  if (!argument.starts_with("--") || argument == "--") return nullptr;
  const RunOption* option = find_run_option(name_of(argument));
  if (option == nullptr) return nullptr;
  const bool is_ours =
      std::find(kNotOfTheLauncher.begin(), kNotOfTheLauncher.end(),
                option->name) == kNotOfTheLauncher.end();
  return is_ours ? option : nullptr;
}

// --help, --help_all, --print_config, in either spelling.
bool is_question_flag(const std::string& argument) {
  return argument == "--help" || argument == "--help-all" ||
         argument == "--help_all" || argument == "--print-config" ||
         argument == "--print_config";
}

void note_idle_gpus(Plan& plan, const std::string& name) {
  const int num_gpus = plan.gpus.count();
  if (plan.options.is_nproc_given || num_gpus < 2 || plan.is_for_cpus) return;
  plan.notes.push_back(
      fmt::format("1 of {0} GPUs is used; --nproc {0} (or --nproc auto) {1}",
                  num_gpus, name == "train" ? "trains on all" : "uses all"));
}

bool is_on_cpus(const Plan& plan) {
  return plan.is_for_cpus || plan.gpus.count() == 0;
}

// Ranks of a training on the CPUs of one machine are replaced unless the user
// says otherwise.
void choose_recovery(const WorkerCommand& command, Plan& plan) {
  if (plan.options.recovers_in_memory || command.name != "train") return;
  plan.recovers_in_memory =
      plan.num_processes > 1 && plan.nodes.num_nodes == 1 && is_on_cpus(plan);
}

void choose_spares(const WorkerCommand& command, Plan& plan) {
  const auto& asked = plan.options.num_spares;
  if (plan.recovers_in_memory && command.name == "train") {
    plan.num_spares = asked.value_or(is_on_cpus(plan) ? 1 : 0);
  } else if (asked.value_or(0) > 0) {
    throw ConfigError(
        "--spares: no rank of this job is replaced, so that no process can "
        "take its place; leave it out, or train with --recover memory");
  }
}

}  // namespace

WorkerCommand split_worker_command(const std::string& name,
                                   std::span<const std::string> arguments) {
  WorkerCommand command{.name = name, .launch_options = {}, .arguments = {}};
  for (size_t at = 0; at < arguments.size(); ++at) {
    const std::string& argument = arguments[at];
    if (argument == "--") {
      const auto rest = arguments.subspan(at + 1);
      command.arguments.insert(command.arguments.end(), rest.begin(),
                               rest.end());
      break;
    }
    const RunOption* option = find_launch_option(argument);
    if (option == nullptr) {
      command.arguments.push_back(argument);
      continue;
    }
    const bool has_own_word = option->value_name != nullptr &&
                              argument.find('=') == std::string::npos;
    if (has_own_word && at + 1 == arguments.size()) {
      throw ConfigError(fmt::format("--{} needs a value: {}", option->name,
                                    option->value_name));
    }
    const size_t num_words = has_own_word ? 2 : 1;
    const auto words = arguments.subspan(at, num_words);
    command.launch_options.insert(command.launch_options.end(), words.begin(),
                                  words.end());
    if (option->name == kOfBoth) {
      command.arguments.insert(command.arguments.end(), words.begin(),
                               words.end());
    }
    at += num_words - 1;
  }
  return command;
}

bool asks_for_launch_help(const WorkerCommand& command) {
  const auto& arguments = command.arguments;
  return arguments.size() == 1 &&
         (arguments[0] == "--help" || arguments[0] == "-h" ||
          arguments[0] == "--help-all" || arguments[0] == "--help_all");
}

bool is_question(const WorkerCommand& command) {
  const auto& arguments = command.arguments;
  // Among other flags -h may mean anything ("-h 512").
  const bool is_short_help = arguments.size() == 2 && arguments[1] == "-h";
  return arguments.empty() || is_short_help ||
         std::any_of(arguments.begin(), arguments.end(), is_question_flag);
}

std::string worker_command_help(const std::string& name) {
  std::string text = fmt::format(
      "usage: lockstep {0} RECIPE [--nproc N] [options] [flags of the "
      "recipe]\n\n"
      "Starts lockstep-worker {0} RECIPE once per process and watches the\n"
      "processes, as lockstep run does. The options below may stand anywhere;\n"
      "all other flags are the recipe's, and so is everything behind --.\n\n"
      "  lockstep {0} RECIPE --help          shows the recipe's flags\n"
      "  lockstep {0} RECIPE --help-all      shows all of them\n"
      "  lockstep {0} RECIPE --print-config  shows their values\n\n"
      "Where there is no GPU, --nproc auto means 1. The worker is the one in\n"
      "LOCKSTEP_WORKER, beside this program, or on PATH.\n\noptions:\n",
      name);
  for (const RunOption* option : worker_command_options()) {
    // Short names are the recipe's.
    RunOption row = *option;
    row.short_name = '\0';
    text += help_row(row);
  }
  return text;
}

std::vector<const RunOption*> worker_command_options() {
  std::vector<const RunOption*> options;
  for (const RunOption& option : run_option_table()) {
    const std::string word = fmt::format("--{}", option.name);
    if (option.help == nullptr || find_launch_option(word) == nullptr) continue;
    options.push_back(&option);
  }
  return options;
}

std::vector<const RunOption*> most_used_options() {
  std::vector<const RunOption*> options;
  options.reserve(std::size(kMostUsed));
  for (const std::string_view name : kMostUsed) {
    options.push_back(find_run_option(name));
  }
  return options;
}

Plan plan_worker_command(const WorkerCommand& command,
                         const std::string& worker,
                         const base::Environment& environment,
                         const Machine& machine) {
  std::vector<std::string> words = command.launch_options;
  words.insert(words.end(), {"--", worker, command.name});
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  RunOptions options = parse_run_options(words, environment);
  options.module = false;
  options.no_python = true;
  options.run_path = false;
  options.is_recipe = true;
  if (options.nproc == "auto") {
    const bool has_gpus =
        find_flag(command.arguments, "device") != "cpu" &&
        find_visible_gpus(environment, machine.count_gpus).count() > 0;
    options.nproc = has_gpus ? "gpu" : "1";
  }
  Plan plan = make_plan(options, environment, machine);
  note_idle_gpus(plan, command.name);
  choose_recovery(command, plan);
  choose_spares(command, plan);
  plan.runs_own_worker = true;
  return plan;
}

}  // namespace lockstep::launch
