#include "lockstep/track/wandb_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::track {
namespace {

constexpr std::string_view kRefusedInNames = "/\\#?%:";
constexpr size_t kLongestName = 128;

std::vector<std::string> tags_of(std::string_view list) {
  std::vector<std::string> tags;
  for (const std::string& tag : base::split(list, ',')) {
    if (!base::trim(tag).empty()) tags.emplace_back(base::trim(tag));
  }
  return tags;
}

void check_name(std::string_view what, std::string_view name) {
  if (is_wandb_name(name)) return;
  throw ConfigError(fmt::format(
      "the {} of Weights & Biases cannot be '{}': it has 1 to {} characters, "
      "none of {}, no control character and no blank at its ends",
      what, name, kLongestName, kRefusedInNames));
}

}  // namespace

WandbMode parse_wandb_mode(std::string_view word, std::string_view source) {
  if (word == "offline" || word == "dryrun") return WandbMode::kOffline;
  if (word == "disabled") return WandbMode::kDisabled;
  if (word == "online") return WandbMode::kOnline;
  throw ConfigError(fmt::format(
      "{} is '{}'; it can be offline, online or disabled", source, word));
}

WandbConfig with_environment(WandbConfig config,
                             const base::Environment& environment) {
  const auto fill = [&environment](auto& setting, std::string_view name) {
    const auto value = base::find(environment, name);
    if (!setting && value) setting = *value;
  };
  fill(config.project, "WANDB_PROJECT");
  fill(config.name, "WANDB_NAME");
  fill(config.entity, "WANDB_ENTITY");
  fill(config.run_id, "WANDB_RUN_ID");
  fill(config.group, "WANDB_RUN_GROUP");
  fill(config.job_type, "WANDB_JOB_TYPE");
  fill(config.notes, "WANDB_NOTES");
  fill(config.folder, "WANDB_DIR");
  if (const auto mode = base::find(environment, "WANDB_MODE");
      !config.mode && mode) {
    config.mode = parse_wandb_mode(*mode, "WANDB_MODE");
  }
  if (const auto tags = base::find(environment, "WANDB_TAGS");
      !config.tags && tags) {
    config.tags = tags_of(*tags);
  }
  check_wandb_names(config);
  return config;
}

bool is_wandb_name(std::string_view name) {
  const auto is_refused = [](char letter) {
    return kRefusedInNames.find(letter) != std::string_view::npos ||
           std::iscntrl(static_cast<unsigned char>(letter)) != 0;
  };
  return !name.empty() && base::trim(name) == name &&
         name.size() <= kLongestName && std::ranges::none_of(name, is_refused);
}

void check_wandb_names(const WandbConfig& config) {
  if (config.run_id) check_name("run id", *config.run_id);
  if (config.project) check_name("project", *config.project);
}

}  // namespace lockstep::track
