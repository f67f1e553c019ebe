#include "lockstep/optim/lr_scaling.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.h"

namespace lockstep::optim {

LrScaling parse_lr_scaling(std::string_view text) {
  if (text == "none") return LrScaling::kNone;
  if (text == "linear") return LrScaling::kLinear;
  if (text == "sqrt") return LrScaling::kSqrt;
  throw ConfigError(fmt::format(
      "unknown learning rate scaling '{}'; use none, linear or sqrt", text));
}

double scaled_lr(double base_lr, LrScaling scaling, int num_processes) {
  switch (scaling) {
    case LrScaling::kNone: return base_lr;
    case LrScaling::kLinear: return base_lr * num_processes;
    case LrScaling::kSqrt: return base_lr * std::sqrt(num_processes);
  }
  return base_lr;
}

std::string scaling_text(double base_lr, LrScaling scaling, int num_processes) {
  const double lr = scaled_lr(base_lr, scaling, num_processes);
  const char* noun = num_processes == 1 ? "process" : "processes";
  switch (scaling) {
    case LrScaling::kNone: break;
    case LrScaling::kLinear:
      return fmt::format(
          "learning rate {:.6g} = {:.6g} x {} {} (linear scaling)", lr, base_lr,
          num_processes, noun);
    case LrScaling::kSqrt:
      return fmt::format(
          "learning rate {:.3g} = {:.6g} x sqrt({}) (square root scaling for "
          "{} "
          "{})",
          lr, base_lr, num_processes, num_processes, noun);
  }
  return fmt::format("learning rate {:.6g} (no scaling for {} {})", lr,
                     num_processes, noun);
}

}  // namespace lockstep::optim
