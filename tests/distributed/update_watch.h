// Calls functions before and after the kernels of optimizers, so that a test
// can stop a process within an update, or damage what they work on.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace lockstep::testing {

struct UpdateWatch {
  // Gets averages of gradients or their momentum, sharing the memory.
  std::function<void(const std::vector<at::Tensor>& state)> before =
      [](const std::vector<at::Tensor>&) {};
  std::function<void()> after = [] {};
};

// For the rest of the process; once.
void watch_updates(UpdateWatch watch);

}  // namespace lockstep::testing
