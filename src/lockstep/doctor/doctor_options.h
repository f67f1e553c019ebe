// The words behind `lockstep doctor`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/launch/options.h"

namespace lockstep::doctor {

struct DoctorOptions {
  bool help = false;
  bool json = false;
  double limit_seconds = 120;  // Per measurement.
  launch::RunOptions launch = {};
  // RECIPE and its flags; empty: no recipe.
  std::vector<std::string> recipe = {};
};

// [--json] [--limit SECONDS] [launch options] [train RECIPE flags...]. Throws
// ConfigError.
DoctorOptions parse_doctor_options(std::span<const std::string> arguments,
                                   const base::Environment& environment);

std::string doctor_help();

}  // namespace lockstep::doctor
