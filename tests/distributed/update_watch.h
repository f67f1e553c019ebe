// Calls functions before and after the kernels of optimizers, so that a test
// can stop a process within an update.
#pragma once

#include <functional>

namespace lockstep::testing {

struct UpdateWatch {
  std::function<void()> before = [] {};
  std::function<void()> after = [] {};
};

// For the rest of the process; once.
void watch_updates(UpdateWatch watch);

}  // namespace lockstep::testing
