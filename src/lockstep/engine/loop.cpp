#include "lockstep/engine/loop.h"

#include <fmt/format.h>

#include <ranges>

#include "lockstep/base/clock.h"
#include "lockstep/base/divide.h"
#include "lockstep/base/status.h"
#include "lockstep/comm/explain.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device.h"

namespace lockstep::engine {

TrainLoop::TrainLoop(Learner& learner, StepLoader loader, const World& world,
                     track::Console& console, LoopConfig config)
    : learner_(learner),
      loader_(std::move(loader)),
      world_(world),
      console_(console),
      config_(std::move(config)),
      timer_(world.device(), world.status()),
      recorder_(world, timer_, config_.cuda_graphs) {
  // Several ranks take back what their recovery has written down.
  if (config_.on_out_of_memory != OnOutOfMemory::kFail && world.size() == 1) {
    rollback_.emplace(learner, world.device());
  }
}

void TrainLoop::run(TrainState state, std::vector<Callback*> callbacks) {
  state_ = std::move(state);
  callbacks_ = std::move(callbacks);
  // Constructed in place: Batches cannot be moved.
  batches_.reset(new Batches(loader_.batches(state_.position)));
  for (Callback* callback : callbacks_) callback->begin(*this);
  if (is_finished() && !config_.is_recovered) say_nothing_to_train();
  if (config_.recovery) config_.recovery->begin(learner_, state_);
  try {
    train();
  } catch (const PeerError&) {
    throw;  // The work that made the new records may be repeated.
  } catch (const std::exception& error) {
    if (!comm::is_peer_loss(error) && !world_.has_lost_ranks()) {
      pass_records_on();
    }
    throw;
  } catch (...) {
    pass_records_on();
    throw;
  }
  batches_.reset();
}

void TrainLoop::train() {
  while (run_callbacks() && !is_finished() && poll()) train_step();
  for (Callback* callback : std::views::reverse(callbacks_)) {
    callback->finish(*this);
  }
  require_ranks();
  pass_records_on();
}

bool TrainLoop::is_finished() const {
  if (state_.stopped_early) return true;
  if (config_.num_steps) return state_.step >= *config_.num_steps;
  return state_.position.epoch >= config_.num_epochs;
}

double TrainLoop::next_lr() const {
  const double factor = state_.plateau ? state_.plateau->lr : 1;
  return lr_at(config_.schedule, config_.base_lr, state_.step + 1) * factor;
}

void TrainLoop::train_step() {
  if (world_.must_reform()) {
    throw PeerError("the launcher has told the ranks to connect anew");
  }
  const int64_t begin = base::monotonic_ns();
  world_.status().set_step(state_.step);
  config_.status.begin(base::Activity::kStep);
  const Step step = config_.on_out_of_memory == OnOutOfMemory::kFail
                        ? begin_and_run_step()
                        : run_step_within_memory();
  timer_.end_step();
  if (config_.recovery) {
    config_.recovery->after_update(learner_, state_.step + 1);
    timer_.wait_end();
  }
  totals_.num_samples += step.num_samples;
  ++state_.step;
  config_.status.set_num_steps(state_.step);
  state_.position = step.next;
  totals_.busy_ns += base::monotonic_ns() - begin;
  state_.due = {};
  for (Callback* callback : callbacks_) callback->after_step(*this, step);
  commit();
}

Step TrainLoop::begin_and_run_step() {
  timer_.begin_step();
  learner_.begin_step(next_lr());
  return recorder_.is_enabled() ? run_whole_step() : run_step();
}

Step TrainLoop::run_step_within_memory() {
  for (;;) {
    if (rollback_) rollback_->note();
    try {
      return begin_and_run_step();
    } catch (const std::exception& error) {
      if (!comm::is_out_of_memory(error) || !learner_.can_repeat_step() ||
          micro_batch_size() == 1) {
        throw;
      }
    }
    // Not before: what the step has allocated is free now.
    if (!rollback_) halve_batch_of_all_ranks();
    halve_batch();
  }
}

// The others wait for this rank's gradients. As one that has lost them, it lets
// go of its connections, by which they lose it too.
void TrainLoop::halve_batch_of_all_ranks() {
  const BatchSize before = batch_size();
  const BatchSize after = halved(before);
  LOCKSTEP_CHECK(config_.recovery != nullptr, "ranks that can connect anew");
  const std::string text = halving_text(state_.step + 1, before, after,
                                        loader_.config().global_batch_size);
  console_.warn(text);
  config_.recovery->want_micro_batch(after.per_process);
  throw PeerError(text);
}

BatchSize TrainLoop::batch_size() const {
  const StepLoaderConfig& config = loader_.config();
  return {
      .per_process = config.micro_batch_size,
      .num_processes = world_.size(),
      .accumulation = base::divide_up(config.global_batch_size,
                                      config.micro_batch_size * world_.size())};
}

void TrainLoop::halve_batch() {
  batches_.reset();
  rollback_->undo();
  recorder_.restart();
  tensor::release_cached_memory(world_.device());
  const BatchSize before = batch_size();
  const BatchSize after = halved(before);
  console_.warn(halving_text(state_.step + 1, before, after,
                             loader_.config().global_batch_size));
  loader_ = loader_.with_micro_batches_of(after.per_process);
  batches_.reset(new Batches(loader_.batches(state_.position)));
}

// Loads a micro-batch while the previous one is computed.
Step TrainLoop::run_step() {
  for (;;) {
    const Batch batch = next_batch();
    timer_.data_end();
    compute_gradients(batch);
    if (!batch.ends_step()) continue;
    update();
    return batch.step;
  }
}

// All micro-batches first: they are the input of one graph.
Step TrainLoop::run_whole_step() {
  std::vector<Batch> batches;
  do {
    batches.push_back(next_batch());
  } while (!batches.back().ends_step());
  timer_.data_end();
  recorder_.run(batches,
                {.run =
                     [this](const std::vector<Batch>& inputs) {
                       for (const Batch& batch : inputs) {
                         compute_gradients(batch);
                       }
                       update();
                     },
                 .abandon = [this] { learner_.abandon_step(); },
                 .can_be_captured = learner_.updates_in_device_memory()});
  if (const std::string problem = recorder_.take_problem(); !problem.empty()) {
    console_.warn(fmt::format(
        "this step cannot be a CUDA graph and is launched kernel by kernel, "
        "which is slower: {}",
        problem));
  }
  return batches.back().step;
}

Batch TrainLoop::next_batch() {
  auto batch = batches_->next();
  LOCKSTEP_CHECK(batch.has_value(), "the loader ended before the training");
  return *std::move(batch);
}

void TrainLoop::compute_gradients(const Batch& batch) {
  timer_.forward_begin();
  learner_.forward(batch);
  timer_.forward_end();
  check_halving_of_loss(config_.on_out_of_memory, learner_);
  if (config_.recovery && batch.ends_step()) {
    config_.recovery->before_exchange(learner_, state_.step + 1);
  }
  learner_.backward();
  timer_.backward_end();
}

void TrainLoop::update() {
  world_.status().set_phase(base::Phase::kUpdating);
  learner_.update();
  timer_.update_end();
}

bool TrainLoop::run_callbacks() {
  for (Callback* callback : callbacks_) {
    if (!callback->due(*this)) continue;
    world_.status().set_phase(base::Phase::kBetweenSteps);
    const bool is_done = callback->run(*this);
    require_ranks();
    commit();
    if (!is_done) return false;
  }
  return true;
}

// What was read from a GPU may be garbage, without an error.
void TrainLoop::require_ranks() const {
  if (!world_.has_lost_ranks()) return;
  throw PeerError("another rank was lost between two steps");
}

// Records leave first: those of work that is committed are not made again.
void TrainLoop::commit() {
  if (!config_.recovery) return;
  pass_records_on();
  config_.recovery->commit(learner_, state_);
}

void TrainLoop::pass_records_on() {
  for (track::Record& record : std::exchange(new_records_, {})) {
    config_.record(std::move(record));
  }
}

bool TrainLoop::poll() {
  for (Callback* callback : callbacks_) {
    if (!callback->poll(*this)) return false;
  }
  return true;
}

void TrainLoop::observe(const Observation& observation) {
  for (Callback* callback : callbacks_) callback->observe(*this, observation);
}

void TrainLoop::record(Metrics metrics) {
  record(track::Record{.step = state_.step, .metrics = std::move(metrics)});
}

void TrainLoop::record(track::Record record) {
  if (!config_.record) return;
  if (config_.recovery) {
    new_records_.push_back(std::move(record));
  } else {
    config_.record(std::move(record));
  }
}

GoOn TrainLoop::go_on(const char* label, base::Activity activity) {
  return [this, label, activity](int64_t done, int64_t total) {
    console_.progress({.label = label, .step = done, .total_steps = total});
    if (!poll()) return false;
    config_.status.begin(activity);
    return true;
  };
}

StepTotals TrainLoop::take_totals() {
  totals_.times = timer_.take();
  const track::StepTimes& times = totals_.times;
  config_.status.add_times(
      {.num_steps = times.steps,
       .data = times.data,
       .compute = times.forward + times.backward + times.optimizer,
       .exchange = times.exchange,
       .other = times.other});
  return std::exchange(totals_, {});
}

void TrainLoop::say_nothing_to_train() const {
  const std::string why = state_.stopped_early
                              ? "it was stopped early; a larger "
                                "--early_stopping_patience continues it"
                              : "a larger --epochs or --n_steps continues it";
  console_.info(
      fmt::format("nothing to train: the run ended at step {}, epoch {} ({})",
                  state_.step, state_.position.epoch, why));
}

}  // namespace lockstep::engine
