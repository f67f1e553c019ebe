#include "lockstep/optim/plateau.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::optim {
namespace {

void check_plateau(const PlateauConfig& config) {
  if (config.mode != "min" && config.mode != "max") {
    throw ConfigError(
        fmt::format("plateau mode '{}': it is min or max", config.mode));
  }
  if (config.threshold_mode != "rel" && config.threshold_mode != "abs") {
    throw ConfigError(
        fmt::format("plateau threshold mode '{}': it is rel or abs",
                    config.threshold_mode));
  }
  if (!(config.factor > 0) || !(config.factor < 1) || config.patience < 0 ||
      config.cooldown < 0 || !(config.base_lr > 0) || !(config.min_lr >= 0)) {
    throw ConfigError(fmt::format(
        "plateau with factor {}, patience {}, cooldown {}, base_lr {}, min_lr "
        "{}: the factor must be between 0 and 1, base_lr above 0, the others 0 "
        "or above",
        config.factor, config.patience, config.cooldown, config.base_lr,
        config.min_lr));
  }
}

}  // namespace

Plateau::Plateau(PlateauConfig config) : config_(std::move(config)) {
  check_plateau(config_);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  state_.lr = config_.base_lr;
  state_.best = config_.mode == "min" ? kInfinity : -kInfinity;
}

bool Plateau::is_better(double metric) const {
  const bool is_relative = config_.threshold_mode == "rel";
  if (config_.mode == "min") {
    return metric < (is_relative ? state_.best * (1.0 - config_.threshold)
                                 : state_.best - config_.threshold);
  }
  return metric > (is_relative ? state_.best * (config_.threshold + 1.0)
                               : state_.best + config_.threshold);
}

void Plateau::observe(double metric) {
  if (is_better(metric)) {
    state_.best = metric;
    state_.num_bad = 0;
  } else {
    ++state_.num_bad;
  }
  if (state_.cooldown_left > 0) {
    --state_.cooldown_left;
    state_.num_bad = 0;
  }
  if (state_.num_bad > config_.patience) {
    reduce();
    state_.cooldown_left = config_.cooldown;
    state_.num_bad = 0;
  }
}

void Plateau::reduce() {
  const double reduced = std::max(state_.lr * config_.factor, config_.min_lr);
  if (state_.lr - reduced > config_.eps) state_.lr = reduced;
}

}  // namespace lockstep::optim
