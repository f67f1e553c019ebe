#include "lockstep/app/description.h"

#include <fmt/format.h>

#include <optional>

#include "lockstep/cli/command_line.h"
#include "lockstep/cli/help.h"
#include "lockstep/config/groups.h"
#include "lockstep/config/render.h"
#include "lockstep/launch/commands.h"
#include "lockstep/launch/option_table.h"
#include "lockstep/launch/worker_command.h"
#include "lockstep/lockstep.h"
#include "lockstep/preparation.h"
#include "lockstep/registry.h"

namespace lockstep::app {
namespace {

manual::Flag flag_of(const launch::RunOption& option) {
  manual::Flag flag{.name = option.name, .help = option.help};
  if (option.value_name != nullptr) flag.value = option.value_name;
  return flag;
}

manual::Flag flag_of(const Setting& setting) {
  return {.name = setting.name,
          .value = config::value_name(setting),
          .has_negation = setting.binding.kind == ScalarKind::kBool,
          .help = setting.help,
          .help_notes = "default: " + config::default_text(setting),
          .choices = setting.details.choices};
}

manual::Section section_of(const config::SettingGroup& group) {
  manual::Section section{.title = group.title};
  for (const Setting* setting : group.settings) {
    section.flags.push_back(flag_of(*setting));
  }
  return section;
}

manual::Section launching_section() {
  manual::Section section{.title = "Launching"};
  for (const launch::RunOption* option : launch::worker_command_options()) {
    section.flags.push_back(flag_of(*option));
  }
  return section;
}

manual::Section general_flags_section(config::HelpPages pages) {
  manual::Section section{.title = "General"};
  for (const config::GeneralFlag& flag : config::general_flags(pages)) {
    section.flags.push_back({.name = flag.name,
                             .short_name = flag.short_name,
                             .value = flag.value,
                             .help = flag.help});
  }
  return section;
}

std::optional<Purpose> purpose_of(std::string_view command) {
  if (command == "train") return Purpose::kTrain;
  if (command == "eval") return Purpose::kEval;
  if (command == "sample") return Purpose::kSample;
  return std::nullopt;
}

// Settings that all recipes share, without defaults, which recipes change.
// --fid is a flag of some.
std::vector<manual::Section> common_sections(Purpose purpose) {
  const auto recipe = make_recipe("dit");
  const cli::CommandLine line(purpose, *recipe);
  std::vector<manual::Section> sections = {launching_section()};
  for (const auto& group : cli::common_groups(line.options())) {
    manual::Section section = section_of(group);
    for (manual::Flag& flag : section.flags) flag.help_notes.clear();
    sections.push_back(std::move(section));
  }
  sections.push_back(general_flags_section(config::HelpPages::kTwo));
  return sections;
}

std::vector<manual::RecipeFlags> recipe_flags(Purpose purpose) {
  std::vector<manual::RecipeFlags> all;
  for (const RecipeEntry& entry : all_recipes()) {
    const auto recipe = entry.make();
    const cli::CommandLine line(purpose, *recipe);
    manual::RecipeFlags flags{.name = recipe->name(),
                              .summary = recipe->summary()};
    for (const auto& group : cli::own_groups(line.options())) {
      flags.sections.push_back(section_of(group));
    }
    all.push_back(std::move(flags));
  }
  return all;
}

std::vector<manual::RecipeFlags> preparing_recipes() {
  std::vector<manual::RecipeFlags> all = recipe_flags(Purpose::kPrepare);
  std::erase_if(all, [](manual::RecipeFlags& flags) {
    const auto recipe = make_recipe(flags.name);
    auto* preparation = ability<Preparation>(*recipe);
    if (preparation == nullptr) return true;
    // Else its flags are the settings of a training, which it fills caches for.
    if (preparation->takes({})) {
      Options options;
      preparation->describe_preparation(options);
      flags.sections.clear();
      for (const auto& group : config::groups_of(options)) {
        flags.sections.push_back(section_of(group));
      }
    }
    return false;
  });
  return all;
}

manual::Section run_section() {
  manual::Section section{.title = "Options"};
  for (const launch::RunOption& option : launch::run_option_table()) {
    if (option.help == nullptr) continue;
    section.flags.push_back(flag_of(option));
    section.flags.back().short_name = option.short_name;
  }
  return section;
}

manual::Section runs_flags() {
  return {.title = "Options",
          .flags = {{.name = "json", .help = "print JSON for programs"}}};
}

manual::Section doctor_flags() {
  return {.title = "Options",
          .flags = {{.name = "json", .help = "print JSON for programs"},
                    {.name = "limit",
                     .value = "SECONDS",
                     .help = "time of each measurement",
                     .help_notes = "default: 120"}}};
}

manual::Section verify_resume_flags() {
  return {.title = "Options",
          .flags = {{.name = "steps",
                     .value = "N",
                     .help = "steps to train; half of them before the stop",
                     .help_notes = "default: 10"}}};
}

manual::Section board_flags() {
  return {
      .title = "Options",
      .flags = {{.name = "host",
                 .value = "ADDRESS",
                 .help = "address to listen at",
                 .help_notes = "default: 127.0.0.1, this machine only"},
                {.name = "port",
                 .value = "N",
                 .help = "port to listen at; 0: any that is free",
                 .help_notes = "default: 6070"},
                {.name = "token",
                 .help = "ask for a token, which is printed with the address; "
                         "always so unless the address is a loopback"},
                {.name = "token-file",
                 .value = "FILE",
                 .help = "the token is the first line of this file"}}};
}

}  // namespace

manual::Program describe_program() {
  manual::Program program{
      .name = "lockstep",
      .version = std::string(version()),
      .summary = "data-parallel training in C++ on libtorch"};
  for (const launch::Command& row : launch::commands()) {
    manual::Command command{
        .name = row.name, .usage = row.usage, .summary = row.help};
    if (command.name == "prepare") {
      command.sections = {launching_section(),
                          general_flags_section(config::HelpPages::kOne)};
      command.recipes = preparing_recipes();
    } else if (const auto purpose = purpose_of(command.name)) {
      command.sections = common_sections(*purpose);
      command.recipes = recipe_flags(*purpose);
    } else if (command.name == "run" || command.name == "launch") {
      command.sections = {run_section()};
    } else if (command.name == "runs") {
      command.sections = {runs_flags()};
    } else if (command.name == "doctor") {
      command.sections = {doctor_flags(), launching_section()};
    } else if (command.name == "verify-resume") {
      command.sections = {verify_resume_flags(), launching_section()};
    } else if (command.name == "board") {
      command.sections = {board_flags()};
    }
    program.commands.push_back(std::move(command));
  }
  return program;
}

std::vector<config::HelpRow> launching_rows() {
  std::vector<config::HelpRow> rows;
  for (const launch::RunOption* option : launch::most_used_options()) {
    const manual::Flag flag = flag_of(*option);
    rows.push_back({fmt::format("--{}{}{}", flag.name,
                                flag.value.empty() ? "" : " ", flag.value),
                    flag.help});
  }
  rows.push_back({"...", "lockstep train --help shows all of them"});
  return rows;
}

std::vector<std::string> launch_flags() {
  std::vector<std::string> names;
  for (const launch::RunOption* option : launch::worker_command_options()) {
    names.emplace_back(option->name);
  }
  return names;
}

}  // namespace lockstep::app
