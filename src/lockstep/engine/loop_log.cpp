// What the loop tells: logs, the bar's state, the table of times.
#include <fmt/format.h>

#include <cmath>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/engine/common_settings.h"
#include "lockstep/engine/loop.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device.h"

namespace lockstep {
namespace {

constexpr double kNanosecond = 1e-9;

void add(StepTimes& sum, const StepTimes& times) {
  sum.data += times.data;
  sum.forward += times.forward;
  sum.backward += times.backward;
  sum.exchange += times.exchange;
  sum.optimizer += times.optimizer;
  sum.other += times.other;
  sum.steps += times.steps;
}

}  // namespace

void TrainLoop::log() {
  const int64_t begin = monotonic_ns();
  const Progress progress = learner_.take_progress();
  busy_ns_ += monotonic_ns() - begin;  // The device's work of the last steps.
  add(times_, timer_.take());
  if (std::isfinite(progress.loss)) {
    state_.epoch_loss_sum += progress.loss * progress.loss_weight;
    state_.epoch_loss_weight += progress.loss_weight;
  }
  const double seconds = static_cast<double>(busy_ns_) * kNanosecond;
  const double rate = static_cast<double>(samples_) / seconds;
  last_log_ = {{"train/loss", progress.loss},
               {"train/learning_rate", learner_.optimizer().lr()},
               {"train/grad_norm", progress.gradient_norm},
               {"train/epoch", static_cast<double>(state_.position.epoch)},
               {"perf/samples_per_second", rate}};
  for (const auto& [name, value] : progress.parts) {
    last_log_.emplace_back("train/" + name, value);
  }
  if (facts_.flops_per_sample > 0) {
    last_log_.emplace_back("perf/tflops",
                           rate * facts_.flops_per_sample / 1e12);
  }
  if (!world_.device().is_cpu()) {
    last_log_.emplace_back(
        "perf/peak_memory_gib",
        static_cast<double>(device_memory(world_.device()).peak_bytes) /
            (1 << 30));
  }
  if (learner_.scaler() != nullptr) {
    last_log_.emplace_back("train/loss_scale", progress.loss_scale);
  }
  if (progress.skipped_steps > 0) {
    last_log_.emplace_back("train/skipped_steps",
                           static_cast<double>(progress.skipped_steps));
    if (world_.is_main()) {
      console_.warn(fmt::format(
          "{} of the last steps had a gradient that is NaN or infinite on some "
          "rank: skipped by all ranks",
          progress.skipped_steps));
    }
  }
  samples_ = 0;
  busy_ns_ = 0;
  console_.progress_line(progress_state());
  record(last_log_);
  judge_skipped(progress);
}

void TrainLoop::judge_skipped(const Progress& progress) const {
  if (progress.skipped_in_a_row <
      setup_.config.optimization.max_skipped_steps) {
    return;
  }
  throw Error(fmt::format(
      "the gradient was NaN or infinite for {} steps in a row, up to step {}; "
      "the weights are those from before: lower --lr, raise {}, set "
      "--max_grad_norm, use --precision fp32 or bf16, or look for broken "
      "samples (--max_skipped_steps sets this limit)",
      progress.skipped_in_a_row, state_.step,
      warmup_flag(setup_.config.optimization)));
}

void TrainLoop::finish_epoch(int64_t epoch) {
  const double loss = state_.epoch_loss_sum / state_.epoch_loss_weight;
  state_.epoch_loss_sum = 0;
  state_.epoch_loss_weight = 0;
  if (setup_.config.n_steps) {
    console_.info(fmt::format("Epoch {}: Loss = {:.4f}, LR = {:.6f}", epoch + 1,
                              loss, learner_.optimizer().lr()));
  } else {
    console_.info(fmt::format("Epoch {}/{}: Loss = {:.4f}, LR = {:.6f}",
                              epoch + 1, setup_.config.epochs, loss,
                              learner_.optimizer().lr()));
  }
  state_.train_losses.add(loss, kept_losses(setup_.layout.train_losses));
  record({{"train/epoch_loss", loss}});
  // Without a validation set the training loss is all there is to judge by.
  if (setup_.data.validation == nullptr) observe(loss, {{"loss", loss}});
}

ProgressState TrainLoop::progress_state() const {
  ProgressState progress{
      .step = state_.step,
      .total_steps = setup_.total_steps,
      .first_step = first_step_,
      .epoch = epoch_ + 1,
      .total_epochs = setup_.config.n_steps ? 0 : setup_.config.epochs,
      .seconds_elapsed =
          static_cast<double>(monotonic_ns() - begin_ns_) * kNanosecond};
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

void TrainLoop::say_nothing_to_train() const {
  const std::string why =
      state_.stopped_early
          ? "it was stopped early; a larger --early_stopping_patience goes on"
          : "a larger --epochs or --n_steps goes on";
  console_.info(
      fmt::format("nothing to train: the run stands at step {}, "
                  "epoch {}, which is its end ({})",
                  state_.step, state_.position.epoch, why));
}

void TrainLoop::show_times() {
  if (times_.steps == 0) return;
  console_.info(fmt::format("rank {}: {}", world_.rank(), time_table(times_)));
  const DeviceMemory memory = device_memory(world_.device());
  console_.info(fmt::format("peak memory on rank {}: {} of {}", world_.rank(),
                            bytes_text(memory.peak_bytes),
                            bytes_text(memory.total_bytes)));
}

}  // namespace lockstep
