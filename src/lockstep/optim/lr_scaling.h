// How the learning rate follows the number of processes.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::optim {

enum class LrScaling {
  kNone,
  kLinear,  // times the number of processes
  kSqrt,    // times its square root
};

// "none", "linear" or "sqrt"; throws ConfigError for anything else.
LrScaling parse_lr_scaling(std::string_view text);

double scaled_lr(double base_lr, LrScaling scaling, int num_processes);

// The arithmetic, for the log: "learning rate 0.0008 = 0.0001 x 8 processes
// (linear scaling)".
std::string scaling_text(double base_lr, LrScaling scaling, int num_processes);

}  // namespace lockstep::optim
