// What an attempt is asked for from outside: signals, other nodes.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "lockstep/base/clock.h"
#include "lockstep/base/signals.h"
#include "lockstep/launch/attempt.h"

namespace lockstep::launch {
namespace {

std::string processes_text(int count) {
  return fmt::format("{} process{}", count, count == 1 ? "" : "es");
}

}  // namespace

bool Attempt::is_stop_signal(int signal) const {
  const auto& stop_signals = plan_.options.stop_signals;
  return std::find(stop_signals.begin(), stop_signals.end(), signal) !=
         stop_signals.end();
}

void Attempt::handle_signal(int signal) {
  if (!is_stop_signal(signal)) {
    // Only to the workers: a helper process of theirs may die of it.
    for (const Worker& worker : group_.workers) {
      if (worker.is_alive()) kill(worker.pid, signal);
    }
    return;
  }
  const bool may_leave =
      surroundings_.may_leave && (stage_ == Stage::kRunning || is_regrouping_);
  if (signal == SIGTERM && may_leave && !is_leaving_ && !is_stopped_) {
    leave();
  } else {
    stop(signal);
  }
}

void Attempt::stop(int signal) {
  if (is_leaving_ && signal == SIGTERM && stage_ == Stage::kRunning) {
    leave_state();
    return;
  }
  // A second SIGTERM to a node that leaves is about its own patience.
  if (!is_leaving_ || signal != SIGTERM) stop_signal_ = signal;
  if (stage_ == Stage::kRunning) {
    is_stopped_ = true;
    end_workers(signal);
    surroundings_.err.write(fmt::format("lockstep: {} received, ending {}\n",
                                        base::signal_name(signal),
                                        processes_text(plan_.num_processes)));
    if (signal == SIGINT) patience_.emplace(base::monotonic_ns());
  } else if (signal == SIGINT && is_regrouping_ && !is_stopped_) {
    // The first one: the save goes on.
    is_stopped_ = true;
    surroundings_.err.write(
        "lockstep: SIGINT received, the job does not go "
        "on\n");
  } else if (signal == SIGINT) {
    // Whoever presses Ctrl-C while the job ends does not want to wait.
    patience_.reset();
    set_deadline(0);
  } else if (patience_) {
    // A batch system or a shutdown of the machine does not wait for long.
    is_stopped_ = is_stopped_ || !is_leaving_;
    patience_.reset();
    set_deadline(plan_.options.shutdown_timeout);
  }
}

// The workers of all nodes stop, and the others start again without this one.
void Attempt::leave() {
  is_leaving_ = true;
  surroundings_.link->send(
      nodes::Ending{.signal = SIGTERM, .is_leaving = true});
  surroundings_.err.write(fmt::format(
      "lockstep: SIGTERM received, this node leaves the job, ending {}\n",
      processes_text(plan_.num_processes)));
  // Where ranks keep their state the others let go of this node first: when too
  // few stay, the job stops as a whole, and saves.
  if (stage_ == Stage::kRunning && !surroundings_.keeps_state) regroup();
}

// The others have the state.
void Attempt::leave_state() {
  is_ordered_ = true;
  is_regrouping_ = true;
  end_workers(SIGKILL);
}

void Attempt::regroup() {
  is_ordered_ = true;
  is_regrouping_ = true;
  end_workers(SIGTERM);
  patience_.emplace(base::monotonic_ns());
}

// While this node ends, nobody can ask for more, but it may wait for a save in
// vain.
bool Attempt::hears_nodes() const {
  return surroundings_.link != nullptr &&
         (stage_ == Stage::kRunning ||
          (stage_ == Stage::kEnding && patience_.has_value()) ||
          (stage_ < Stage::kOver && surroundings_.is_elastic && !is_cut_));
}

void Attempt::hear_nodes() {
  if (!hears_nodes()) return;
  const bool is_lost = surroundings_.link->loss().has_value();
  while (const auto message = surroundings_.link->next()) {
    if (const auto* note = std::get_if<nodes::Note>(&*message)) {
      print({&note->text, 1});
    }
    const auto* order = std::get_if<nodes::End>(&*message);
    if (order == nullptr) continue;
    follow(*order);
    return;
  }
  using Kind = nodes::End::Kind;
  if (!is_lost) return;
  const bool is_held = surroundings_.keeps_state && stage_ == Stage::kRunning;
  follow({.kind = is_held                    ? Kind::kSuspend
                  : surroundings_.is_elastic ? Kind::kCut
                                             : Kind::kFailure});
}

void Attempt::follow(const nodes::End& order) {
  using Kind = nodes::End::Kind;
  if (order.kind == Kind::kCut) {
    cut();
    return;
  }
  if (stage_ != Stage::kRunning) {
    const bool is_loss =
        order.kind == Kind::kFailure || order.kind == Kind::kSuspend;
    if (is_loss && patience_) give_up_saving();
    return;
  }
  if (order.kind == Kind::kSuspend) {
    if (!has_live_workers()) return;  // All its work is done.
    if (is_leaving_) {
      leave_state();
      return;
    }
    if (held_state(group_.workers).can_go_on) {
      suspend();
      return;
    }
  }
  if (order.kind == Kind::kRegroup) {
    // A node that has done all its work has nothing to stop.
    if (has_live_workers()) regroup();
    return;
  }
  is_ordered_ = true;
  if (order.kind == Kind::kStop) {
    is_stopped_ = true;
    stop_signal_ = order.signal;
    surroundings_.err.write(fmt::format(
        "lockstep: another node received {}, ending the processes of this "
        "one\n",
        base::signal_name(order.signal)));
    if (order.signal == SIGINT) patience_.emplace(base::monotonic_ns());
  }
  if (order.kind == Kind::kStuck) {
    overdue_ = stuck_;
    is_silent_ = overdue_.has_value();
  }
  end_workers(is_stopped_ ? order.signal : SIGTERM);
}

// Before others start again that do not hear this node.
void Attempt::cut() {
  is_cut_ = true;
  if (stage_ == Stage::kRunning) {
    is_ordered_ = true;
    end_workers(SIGKILL);
    return;
  }
  patience_.reset();
  if (stage_ != Stage::kKilling) set_deadline(0);
}

// The ranks of this node let go of the others, and keep what they have.
void Attempt::suspend() {
  for (const Worker& worker : group_.workers) {
    if (worker.is_alive()) worker.recovery.suspend();
  }
  is_suspended_ = true;
  stage_ = Stage::kOver;
}

// A node was lost, without which nothing can be saved.
void Attempt::give_up_saving() {
  patience_.reset();
  for (const Worker& worker : group_.workers) {
    worker.status.announce_loss();
    worker.signal_group(SIGTERM);
  }
  set_deadline(plan_.options.shutdown_timeout);
}

}  // namespace lockstep::launch
