#include "lockstep/cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/settings.h"

namespace lockstep::cli {
namespace {

using SettingList = std::vector<const Setting*>;

constexpr auto kMostUsedToTrain =
    std::to_array<std::string_view>({"data_path",
                                     "save_dir",
                                     "resume",
                                     "init_from",
                                     "overwrite",
                                     "seed",
                                     "device",
                                     "precision",
                                     "epochs",
                                     "n_steps",
                                     "batch_size",
                                     "global_batch_size",
                                     "workers",
                                     "gradient_accumulation_steps",
                                     "optimizer",
                                     "weight_decay",
                                     "max_grad_norm",
                                     "ema_decay",
                                     "lr",
                                     "lr_schedule",
                                     "warmup_steps",
                                     "warmup_epochs",
                                     "log_every",
                                     "val_every",
                                     "save_every",
                                     "sample_every",
                                     "keep_last",
                                     "tensorboard",
                                     "use_wandb",
                                     "fast_dev_run"});

// eval and sample.
constexpr auto kMostUsedToInfer = std::to_array<std::string_view>(
    {"checkpoint", "ema", "fid", "data_path", "save_dir", "seed", "device",
     "precision", "batch_size", "workers", "limit_val_batches"});

// Described by the commands themselves, for every recipe.
constexpr auto kOfCommands = std::to_array<std::string_view>(
    {"checkpoint", "ema", "fid", "predict", "profile"});

bool is_most_used(const Setting& setting, Purpose purpose) {
  const auto is_among = [&](const auto& names) {
    return std::ranges::find(names, setting.name) != names.end();
  };
  return purpose == Purpose::kEval || purpose == Purpose::kSample
             ? is_among(kMostUsedToInfer)
             : is_among(kMostUsedToTrain);
}

struct SplitSettings {
  SettingList own;
  SettingList common;
};

SplitSettings split(const Options& options) {
  const Settings shared;
  // Recipes that generate images describe how they are scored.
  const bool has_scores = options.has("fid_every");
  SplitSettings result;
  for (const Setting& setting : options.settings()) {
    if (setting.name == "fid" && !has_scores) continue;
    const bool is_common =
        shared.options.has(setting.name) ||
        std::ranges::find(kOfCommands, setting.name) != kOfCommands.end();
    (is_common ? result.common : result.own).push_back(&setting);
  }
  return result;
}

std::vector<config::HelpSection> sections_of(const SettingList& settings,
                                             config::HelpDetail detail) {
  std::vector<config::HelpSection> sections;
  for (const config::SettingGroup& group : config::groups_of(settings)) {
    sections.push_back(config::help_section(group, detail));
  }
  return sections;
}

std::string page(const HelpConfig& config, const SettingList& own,
                 const SettingList& common, config::HelpDetail detail) {
  std::vector<config::HelpSection> sections;
  if (!config.launching.empty()) {
    sections.push_back({.title = "Launching", .rows = config.launching});
  }
  for (const SettingList* list : {&own, &common}) {
    for (auto& section : sections_of(*list, detail)) {
      sections.push_back(std::move(section));
    }
  }
  sections.push_back(config::general_section(config::HelpPages::kTwo));
  return config::help_page(config.usage, config.about, sections);
}

}  // namespace

std::vector<config::SettingGroup> own_groups(const Options& options) {
  return config::groups_of(split(options).own);
}

std::vector<config::SettingGroup> common_groups(const Options& options) {
  return config::groups_of(split(options).common);
}

std::string short_help(const Options& options, const HelpConfig& config) {
  SplitSettings shown = split(options);
  const size_t num_flags = shown.own.size() + shown.common.size();
  std::erase_if(shown.common, [&](const Setting* setting) {
    return !is_most_used(*setting, config.purpose);
  });
  return page(config, shown.own, shown.common, config::HelpDetail::kShort) +
         fmt::format(
             "\n{} --help_all shows {} flags in all. A flag may be spelled "
             "with - or _.\n",
             config.command, num_flags);
}

std::string full_help(const Options& options, const HelpConfig& config) {
  const SplitSettings all = split(options);
  return page(config, all.own, all.common, config::HelpDetail::kFull);
}

}  // namespace lockstep::cli
