#include "lockstep/engine/logging_callback.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/engine/loop.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device.h"

namespace lockstep::engine {
namespace {

constexpr double kNanosecond = 1e-9;

void add_times(track::StepTimes& sum, const track::StepTimes& times) {
  sum.data += times.data;
  sum.forward += times.forward;
  sum.backward += times.backward;
  sum.exchange += times.exchange;
  sum.optimizer += times.optimizer;
  sum.other += times.other;
  sum.steps += times.steps;
  sum.launch_bound_steps += times.launch_bound_steps;
}

// Milliseconds per step on this rank.
void add_split(Metrics& metrics, const track::StepTimes& times) {
  if (times.steps <= 0) return;
  const double scale = 1e3 / static_cast<double>(times.steps);
  metrics.emplace_back("perf/data_ms", scale * times.data);
  metrics.emplace_back(
      "perf/compute_ms",
      scale * (times.forward + times.backward + times.optimizer));
  metrics.emplace_back("perf/exchange_ms", scale * times.exchange);
  metrics.emplace_back("perf/other_ms", scale * times.other);
}

}  // namespace

LoggingCallback::LoggingCallback(LoggingConfig config)
    : config_(std::move(config)) {}

void LoggingCallback::begin(TrainLoop& loop) {
  first_step_ = loop.state().step;
  epoch_ = loop.state().position.epoch;
  begin_ns_ = base::monotonic_ns();
}

void LoggingCallback::after_step(TrainLoop& loop, const Step& step) {
  loop.state().due.logging = step;
  epoch_ = step.begin.epoch;
}

bool LoggingCallback::due(const TrainLoop& loop) const {
  return loop.state().due.logging.has_value();
}

bool LoggingCallback::run(TrainLoop& loop) {
  const Step step = *std::exchange(loop.state().due.logging, std::nullopt);
  if (loop.state().step % config_.every == 0 || step.ends_epoch() ||
      loop.is_finished()) {
    log(loop);
  }
  if (step.ends_epoch()) finish_epoch(loop, step.begin.epoch);
  track::ProgressState progress = progress_state(loop);
  if (loop.console().is_line_due(progress.label)) {
    progress.loss = loop.learner().own_loss();
  }
  loop.console().progress(progress);
  return true;
}

void LoggingCallback::log(TrainLoop& loop) {
  const int64_t begin = base::monotonic_ns();
  const Progress progress = loop.learner().take_progress();
  const int64_t waited_ns =
      base::monotonic_ns() - begin;  // Covers the last steps.
  const StepTotals totals = loop.take_totals();
  add_times(times_, totals.times);
  TrainState& state = loop.state();
  state.logged_step = state.step;
  if (std::isfinite(progress.loss)) {
    state.epoch_loss_sum += progress.loss * progress.loss_weight;
    state.epoch_loss_weight += progress.loss_weight;
  }
  const double seconds =
      static_cast<double>(totals.busy_ns + waited_ns) * kNanosecond;
  last_log_ = metrics_of(loop, progress,
                         static_cast<double>(totals.num_samples) / seconds);
  add_split(last_log_, totals.times);
  if (progress.skipped_steps > 0 && loop.world().is_main()) {
    loop.console().warn(fmt::format(
        "{} of the last steps had a gradient that is NaN or infinite on some "
        "rank: skipped by all ranks",
        progress.skipped_steps));
  }
  loop.console().progress_line(progress_state(loop));
  loop.record(last_log_);
  check_skipped(loop, progress);
}

Metrics LoggingCallback::metrics_of(TrainLoop& loop, const Progress& progress,
                                    double samples_per_second) const {
  Metrics metrics = {
      {"train/loss", progress.loss},
      {"train/learning_rate", loop.learner().optimizer().lr()},
      {"train/grad_norm", progress.gradient_norm},
      {"train/epoch", static_cast<double>(loop.state().position.epoch)},
      {"perf/samples_per_second", samples_per_second}};
  for (const auto& [name, value] : progress.parts) {
    metrics.emplace_back("train/" + name, value);
  }
  if (config_.flops_per_sample > 0) {
    metrics.emplace_back("perf/tflops",
                         samples_per_second * config_.flops_per_sample / 1e12);
  }
  const c10::Device device = loop.world().device();
  if (!device.is_cpu()) {
    metrics.emplace_back(
        "perf/peak_memory_gib",
        static_cast<double>(tensor::device_memory(device).peak_bytes) /
            (1 << 30));
  } else {
    metrics.emplace_back(
        "perf/memory_gib",
        static_cast<double>(tensor::host_memory_in_use()) / (1 << 30));
  }
  if (loop.learner().scaler() != nullptr) {
    metrics.emplace_back("train/loss_scale", progress.loss_scale);
  }
  if (progress.skipped_steps > 0) {
    metrics.emplace_back("train/skipped_steps",
                         static_cast<double>(progress.skipped_steps));
  }
  return metrics;
}

void LoggingCallback::check_skipped(const TrainLoop& loop,
                                    const Progress& progress) const {
  if (progress.skipped_in_a_row < config_.max_skipped_steps) return;
  throw Error(fmt::format(
      "the gradient was NaN or infinite for {} steps in a row, up to step {}; "
      "the weights are those from before: lower --lr, raise {}, set "
      "--max_grad_norm, use --precision fp32 or bf16, or look for broken "
      "samples (--max_skipped_steps sets this limit)",
      progress.skipped_in_a_row, loop.state().step, config_.warmup_flag));
}

void LoggingCallback::finish_epoch(TrainLoop& loop, int64_t epoch) {
  TrainState& state = loop.state();
  const double loss = state.epoch_loss_sum / state.epoch_loss_weight;
  state.epoch_loss_sum = 0;
  state.epoch_loss_weight = 0;
  const std::string of_all =
      config_.num_epochs > 0 ? fmt::format("/{}", config_.num_epochs) : "";
  loop.console().info(fmt::format("Epoch {}{}: Loss = {:.4f}, LR = {:.6f}",
                                  epoch + 1, of_all, loss,
                                  loop.learner().optimizer().lr()));
  state.train_losses.add(loss, config_.keep_losses);
  loop.record({{"train/epoch_loss", loss}});
  if (config_.observes_loss) {
    loop.observe({.value = loss,
                  .name = "training loss",
                  .better = Better::kLower,
                  .metrics = {{"loss", loss}}});
  }
}

track::ProgressState LoggingCallback::progress_state(
    const TrainLoop& loop) const {
  track::ProgressState progress{
      .step = loop.state().step,
      .total_steps = config_.total_steps,
      .first_step = first_step_,
      .epoch = epoch_ + 1,
      .total_epochs = config_.num_epochs,
      .seconds_elapsed =
          static_cast<double>(base::monotonic_ns() - begin_ns_) * kNanosecond};
  for (const auto& [name, value] : last_log_) {
    if (name == "train/loss") {
      progress.loss = value;
    } else if (name == "train/learning_rate") {
      progress.lr = value;
    } else if (name == "perf/samples_per_second") {
      progress.samples_per_second = value;
    } else if (name != "train/epoch") {
      progress.extra.emplace_back(name.substr(name.find('/') + 1), value);
    }
  }
  return progress;
}

void LoggingCallback::finish(TrainLoop& loop) {
  track::Console& console = loop.console();
  console.progress(progress_state(loop));
  console.finish_progress();
  if (times_.steps == 0) return;
  const World& world = loop.world();
  console.info(
      fmt::format("rank {}: {}", world.rank(), track::time_table(times_)));
  const tensor::DeviceMemory memory = tensor::device_memory(world.device());
  console.info(fmt::format("peak memory on rank {}: {} of {}", world.rank(),
                           base::bytes_text(memory.peak_bytes),
                           base::bytes_text(memory.total_bytes)));
}

}  // namespace lockstep::engine
