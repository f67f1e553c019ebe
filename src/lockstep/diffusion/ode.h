// Sampling as an ordinary differential equation: dz / dt = velocity(z, t),
// integrated from noise to a sample.
//
// Times may rise or fall. Nothing here waits for the device.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::diffusion {

using Velocity = std::function<at::Tensor(const at::Tensor& z, double t)>;

// Called after each step, with the number of steps done.
using StepObserver = std::function<void(int64_t done, const at::Tensor& z)>;

// One step of Euler's method: z + length * velocity(z, time).
struct EulerStep {
  double time = 0;
  double length = 0;  // Negative: back in time.
};

// count + 1 times from `begin` to `end`, evenly spaced.
std::vector<double> even_times(double begin, double end, int64_t count);

// One step per pair of consecutive times.
std::vector<EulerStep> euler_steps(std::span<const double> times);

// First order, one evaluation per step.
at::Tensor follow_euler(const Velocity& velocity, at::Tensor z,
                        std::span<const EulerStep> steps,
                        const StepObserver& observe = {});

// Second order: the mean of the velocities at both ends of a step. The last
// step is Euler's, so that the last time itself, where a velocity may have no
// finite value, is never evaluated.
at::Tensor follow_heun(const Velocity& velocity, at::Tensor z,
                       std::span<const double> times,
                       const StepObserver& observe = {});

}  // namespace lockstep::diffusion
