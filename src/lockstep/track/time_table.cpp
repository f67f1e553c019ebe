#include "lockstep/track/time_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::track {
namespace {

// Less than this is what a sound training spends besides computing.
constexpr double kNotablePercent = 25;

double compute_seconds(const StepTimes& times) {
  return times.forward + times.backward + times.optimizer;
}

double total_seconds(const StepTimes& times) {
  return compute_seconds(times) + times.data + times.exchange + times.other;
}

double percent_of_step(double seconds, const StepTimes& times) {
  return 100 * seconds / total_seconds(times);
}

std::string row(const char* name, double seconds, const StepTimes& times) {
  return fmt::format("  {:<9}  {:>10.2f} ms  {:>3.0f}%\n", name,
                     1e3 * seconds / static_cast<double>(times.steps),
                     percent_of_step(seconds, times));
}

bool is_empty(const StepTimes& times) {
  return times.steps <= 0 || total_seconds(times) <= 0;
}

}  // namespace

std::string time_reading(const StepTimes& times) {
  if (is_empty(times)) return "no step was measured";
  const double data = percent_of_step(times.data, times);
  const double exchange = percent_of_step(times.exchange, times);
  const double other = percent_of_step(times.other, times);
  const double worst = std::max({data, exchange, other});
  if (worst < kNotablePercent && 2 * times.launch_bound_steps > times.steps) {
    return fmt::format(
        "launch-bound: in {:.0f}% of the steps the GPU waits for the host, "
        "which launches kernels one by one; train without --no_cuda_graph, or "
        "raise --batch_size",
        100 * static_cast<double>(times.launch_bound_steps) /
            static_cast<double>(times.steps));
  }
  if (worst < kNotablePercent) {
    return fmt::format(
        "compute-bound: {:.0f}% of the time is forward, backward and optimizer",
        percent_of_step(compute_seconds(times), times));
  }
  if (worst == data) {
    return fmt::format(
        "the loader is the bottleneck: {:.0f}% of the time waits for data; "
        "raise --workers",
        data);
  }
  if (worst == exchange) {
    return fmt::format(
        "gradient synchronization is the bottleneck: {:.0f}% of the time "
        "waits for it; raise --batch_size or accumulate over several steps",
        exchange);
  }
  return fmt::format(
      "{:.0f}% of the time is spent outside of the steps; save, evaluate and "
      "log less often",
      other);
}

std::string time_table(const StepTimes& times) {
  if (is_empty(times)) return time_reading(times);
  return fmt::format("time per step, mean of {} steps:\n", times.steps) +
         row("data", times.data, times) + row("forward", times.forward, times) +
         row("backward", times.backward, times) +
         row("exchange", times.exchange, times) +
         row("optimizer", times.optimizer, times) +
         row("other", times.other, times) +
         row("total", total_seconds(times), times) + time_reading(times);
}

}  // namespace lockstep::track
