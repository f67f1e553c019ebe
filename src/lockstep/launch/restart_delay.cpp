#include "lockstep/launch/restart_delay.h"

#include <algorithm>

namespace lockstep::launch {

double RestartDelay::after(double attempt_seconds) {
  if (attempt_seconds >= kSettledSeconds) next_ = 0;
  const double delay = next_;
  next_ = delay == 0 ? 1 : std::min(2 * delay, kMaxSeconds);
  return delay;
}

}  // namespace lockstep::launch
