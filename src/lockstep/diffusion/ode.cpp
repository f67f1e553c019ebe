#include "lockstep/diffusion/ode.h"

#include <ATen/ATen.h>

namespace lockstep::diffusion {

std::vector<double> even_times(double begin, double end, int64_t count) {
  std::vector<double> times;
  for (int64_t i = 0; i <= count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count);
    times.push_back(begin * (1 - share) + end * share);
  }
  return times;
}

std::vector<EulerStep> euler_steps(std::span<const double> times) {
  std::vector<EulerStep> steps;
  for (size_t i = 0; i + 1 < times.size(); ++i) {
    steps.push_back({.time = times[i], .length = times[i + 1] - times[i]});
  }
  return steps;
}

at::Tensor follow_euler(const Velocity& velocity, at::Tensor z,
                        std::span<const EulerStep> steps,
                        const StepObserver& observe) {
  int64_t done = 0;
  for (const EulerStep& step : steps) {
    z = at::add(z, velocity(z, step.time), step.length);
    if (observe) observe(++done, z);
  }
  return z;
}

at::Tensor follow_heun(const Velocity& velocity, at::Tensor z,
                       std::span<const double> times,
                       const StepObserver& observe) {
  const std::vector<EulerStep> steps = euler_steps(times);
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto [time, length] = steps[i];
    at::Tensor direction = velocity(z, time);
    if (i + 1 < steps.size()) {
      const at::Tensor ahead =
          velocity(at::add(z, direction, length), times[i + 1]);
      direction = (direction + ahead) / 2;
    }
    z = at::add(z, direction, length);
    if (observe) observe(static_cast<int64_t>(i) + 1, z);
  }
  return z;
}

}  // namespace lockstep::diffusion
