#include "lockstep/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

bool has_end(const ScheduleConfig& config) {
  return config.kind == "linear" || config.kind == "cosine";
}

void check_kind(const std::string& kind) {
  const std::vector<std::string> kinds = {"constant", "linear", "cosine",
                                          "step"};
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return;
  const auto meant = base::nearest(kind, kinds);
  throw ConfigError(
      fmt::format("unknown learning rate schedule '{}'{}; use one of {}", kind,
                  meant ? fmt::format(" (did you mean '{}'?)", *meant) : "",
                  base::join(kinds, ", ")));
}

}  // namespace

void check_schedule(const ScheduleConfig& config) {
  check_kind(config.kind);
  if (config.warmup_updates < 0 || !(config.min_lr >= 0)) {
    throw ConfigError(fmt::format(
        "schedule with {} warm-up updates and a smallest learning rate of {}: "
        "both must be 0 or above",
        config.warmup_updates, config.min_lr));
  }
  if (has_end(config) && config.total_updates <= config.warmup_updates) {
    throw ConfigError(fmt::format(
        "the {} schedule ends at update {}, within its warm-up of {}; train "
        "for more updates or warm up for fewer",
        config.kind, config.total_updates, config.warmup_updates));
  }
  if (config.kind == "step" &&
      (config.step_updates < 1 || !(config.gamma > 0))) {
    throw ConfigError(fmt::format(
        "the step schedule has step_updates {} and gamma {}; the first must be "
        "at least 1 and the second above 0",
        config.step_updates, config.gamma));
  }
}

double lr_at(const ScheduleConfig& config, double base_lr, int64_t update) {
  check_schedule(config);
  LOCKSTEP_CHECK(update >= 1, fmt::format("update {}", update));
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const int64_t warmup = config.warmup_updates;
  if (update <= warmup) return base_lr * number(update) / number(warmup);
  if (config.kind == "constant") return base_lr;
  if (config.kind == "step") {
    return base_lr *
           std::pow(config.gamma, number((update - 1) / config.step_updates));
  }
  if (update > config.total_updates) return config.min_lr;
  const double s = number(update - 1 - warmup);
  const double total = number(config.total_updates - warmup);
  if (config.kind == "linear") {
    return base_lr + (config.min_lr - base_lr) * s / total;
  }
  return config.min_lr + (base_lr - config.min_lr) * 0.5 *
                             (1 + std::cos(std::numbers::pi * s / total));
}

}  // namespace lockstep
