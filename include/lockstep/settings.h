// The settings of a run: common settings, the recipe's own, file names and
// checkpoint layout.
#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/checkpoint_layout.h"
#include "lockstep/export.h"
#include "lockstep/options.h"
#include "lockstep/train_config.h"

namespace lockstep {

// Options point into this object: it must not move.
struct LOCKSTEP_EXPORT Settings {
  // With the common settings as options.
  Settings();
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  // Registers a rule for defaults that depend on other settings, or for checks.
  // Rules run in the order of registration once the command line was read,
  // possibly again after a resumed run's settings were loaded. Values that the
  // user gave are kept: see set_default(). A rule may throw ConfigError.
  // The rule may capture the recipe and these settings: both outlive it.
  void add_rule(std::function<void()> rule);

  // For rules: a default, unless a flag or a file gave the setting.
  template <typename Variable, typename Value>
  void set_default(std::string_view name, Variable& variable, Value value) {
    if (!options.was_given(name)) variable = std::move(value);
  }

  // Runs the rules.
  void resolve() const;

  TrainConfig common;
  Options options;
  FileNames files;
  CheckpointLayout checkpoint;

 private:
  std::vector<std::function<void()>> rules_;
};

}  // namespace lockstep
