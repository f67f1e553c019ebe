#include "lockstep/launch/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <csignal>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/option_table.h"

namespace lockstep::launch {
namespace {

const RunOption* find_short(char name) {
  for (const RunOption& option : run_option_table()) {
    if (option.short_name != '\0' && name == option.short_name) return &option;
  }
  return nullptr;
}

[[noreturn]] void unknown_option(const std::string& argument) {
  std::vector<std::string> known;
  for (const RunOption& option : run_option_table()) {
    if (option.help != nullptr) known.push_back(option.name);
  }
  const std::string word =
      base::replace_all(argument.substr(0, argument.find('=')), "_", "-");
  const auto near =
      base::nearest(word.substr(std::min(word.size(), size_t{2})), known);
  throw ConfigError(fmt::format(
      "unknown option '{}' of lockstep run; {}", argument,
      near ? fmt::format("did you mean --{}? ", *near) +
                 "Options of the program go after PROGRAM"
           : "options of the program go after PROGRAM (see lockstep run "
             "--help)"));
}

// --max-r is --max-restarts, as in Python's argparse.
const RunOption* find_abbreviated(const std::string& argument,
                                  std::string_view name) {
  const auto found = find_run_options_beginning(name);
  if (found.empty()) return nullptr;
  if (found.size() == 1) return found[0];
  std::vector<std::string> names;
  for (const RunOption* option : found) {
    names.push_back(std::string("--") + option->name);
  }
  throw ConfigError(fmt::format("'{}' is ambiguous: it may mean {}", argument,
                                base::join(names, ", ")));
}

// One option as written: its row and, when glued to it, its value.
struct Written {
  const RunOption* option;
  std::optional<std::string> value;
};

Written read_option(const std::string& argument) {
  if (argument.starts_with("--")) {
    const auto equals = argument.find('=');
    const std::string name = argument.substr(2, equals - 2);
    const RunOption* option = nullptr;
    if (!name.empty()) option = find_run_option(name);
    if (!name.empty() && option == nullptr) {
      option = find_abbreviated(argument, name);
    }
    if (option == nullptr) unknown_option(argument);
    if (equals == std::string::npos) return {option, std::nullopt};
    return {option, argument.substr(equals + 1)};
  }
  const RunOption* option = find_short(argument[1]);
  if (option == nullptr) unknown_option(argument);
  if (argument.size() == 2) return {option, std::nullopt};
  return {option, argument.substr(argument[2] == '=' ? 3 : 2)};
}

std::string variable_name(const RunOption& option) {
  std::string name = "PET_";
  for (const char* c = option.name; *c != '\0'; ++c) {
    name += *c == '-' ? '_' : static_cast<char>(std::toupper(*c));
  }
  return name;
}

void apply_environment(RunOptions& options,
                       const base::Environment& environment) {
  for (const RunOption& option : run_option_table()) {
    if (option.name == std::string_view("help")) continue;
    const std::string name = variable_name(option);
    const auto value = base::find(environment, name);
    if (!value) continue;
    try {
      option.apply(options, *value);
    } catch (const ConfigError& error) {
      throw ConfigError(std::string(error.what()) + " (from the environment, " +
                        name + "=" + *value + ")");
    }
  }
}

}  // namespace

RunOptions parse_run_options(std::span<const std::string> arguments,
                             const base::Environment& environment) {
  RunOptions options;
  options.stop_signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  apply_environment(options, environment);
  size_t at = 0;
  while (at < arguments.size()) {
    const std::string& argument = arguments[at];
    if (argument.size() < 2 || argument[0] != '-') break;
    ++at;
    if (argument == "--") break;
    Written written = read_option(argument);
    const RunOption& option = *written.option;
    if (option.value_name == nullptr) {
      if (written.value) {
        throw ConfigError(fmt::format("--{} takes no value", option.name));
      }
      written.value = "1";
    } else if (!written.value) {
      if (at == arguments.size()) {
        throw ConfigError(fmt::format("--{} needs a value: {}", option.name,
                                      option.value_name));
      }
      written.value = arguments[at++];
    }
    option.apply(options, *written.value);
    if (options.help) return options;
  }
  if (at == arguments.size()) {
    throw ConfigError(
        "PROGRAM is missing; usage: lockstep run [options] PROGRAM [args...]");
  }
  options.program = arguments[at];
  options.arguments.assign(
      arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1, arguments.end());
  if (options.run_path) {
    options.module = false;
    options.no_python = false;
  }
  if (options.module && options.no_python) {
    throw ConfigError("--module and --no-python exclude each other");
  }
  return options;
}

std::string run_help() {
  std::string text =
      "usage: lockstep run [options] PROGRAM [args...]\n\n"
      "Starts PROGRAM once per GPU or CPU slot of this machine, with the\n"
      "environment that torchrun gives, and watches the processes. On several\n"
      "machines it is started once on each (--nnodes). A .py file runs under\n"
      "python3 (or $PYTHON_EXEC). Every option can also be set as "
      "PET_<OPTION>,\n"
      "be spelled with - or _, and be shortened as long as it fits one option\n"
      "only.\n\noptions:\n";
  for (const RunOption& option : run_option_table()) {
    if (option.help != nullptr) text += help_row(option);
  }
  return text;
}

}  // namespace lockstep::launch
