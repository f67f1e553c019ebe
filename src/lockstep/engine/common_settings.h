// The settings that all recipes share, as options.
#pragma once

#include <string>

#include "lockstep/options.h"
#include "lockstep/tensor/device.h"
#include "lockstep/train_config.h"

namespace lockstep::engine {

// Binds every common setting.
void describe_common(Options& options, TrainConfig& config);

// Throws ConfigError for settings that contradict each other.
void check_config(const TrainConfig& config, const Options& options);

// The flag that sets the warm-up of this run: "--warmup_steps" or
// "--warmup_epochs".
const char* warmup_flag(const OptimizationConfig& optimization);

// --device: "auto", "cpu" or "cuda".
DeviceChoice parse_device_choice(const std::string& name);

}  // namespace lockstep::engine
