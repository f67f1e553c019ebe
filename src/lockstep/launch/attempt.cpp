#include "lockstep/launch/attempt.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/overdue.h"
#include "lockstep/launch/process_activity.h"

namespace lockstep::launch {
namespace {

constexpr double kSweepSeconds = 2;        // for descendants after SIGTERM
constexpr double kUnkillableSeconds = 10;  // then the kernel holds it
constexpr double kCheckSeconds = 5;        // between looks at the pages
constexpr double kCauseSeconds = 0.5;      // between a victim and its cause
constexpr double kReportSeconds = 5;       // while the cause may still report
constexpr double kAgreeSeconds = 2;        // for ranks that read the same input

int milliseconds_until(int64_t deadline_ns) {
  const int64_t left = deadline_ns - base::monotonic_ns();
  return static_cast<int>(std::max<int64_t>(0, left / 1'000'000 + 1));
}

}  // namespace

Attempt::Attempt(const Plan& plan, WorkerGroup& group,
                 const Surroundings& surroundings)
    : plan_(plan),
      group_(group),
      surroundings_(surroundings),
      silence_(plan.timeout_seconds) {
  next_check_ns_ =
      base::monotonic_ns() +
      static_cast<int64_t>(kCheckSeconds * double{base::kNsPerSecond});
}

AttemptResult Attempt::run() {
  while (stage_ != Stage::kOver) {
    wait_for_events();
    for (const int signal : surroundings_.control.read()) {
      handle_signal(signal);
    }
    if (surroundings_.control.is_abandoned()) {
      survivors_ = kill_descendants(kUnkillableSeconds);
      return {.kind = AttemptResult::Kind::kAbandoned,
              .survivors = std::move(survivors_)};
    }
    reap();
    hear_nodes();
    check_failures();
    keep_spares();
    check_collectives();
    if (stage_ == Stage::kRunning) tell_stalls();
    if (stage_ != Stage::kOver) advance();
  }
  if (!is_suspended_) drain();
  return result();
}

void Attempt::wait_for_events() {
  std::vector<pollfd> entries = {
      {surroundings_.control.fd(), POLLIN, 0},
      {surroundings_.child_fd, POLLIN, 0},
      {stalls_.fd(), POLLIN, 0},  // poll() ignores -1
  };
  if (hears_nodes()) entries.push_back({surroundings_.link->fd(), POLLIN, 0});
  for (ConsoleStream* console : {&surroundings_.out, &surroundings_.err}) {
    if (console->has_pending()) entries.push_back({console->fd(), POLLOUT, 0});
  }
  const size_t first_stream = entries.size();
  std::vector<OutputStream*> streams;
  for (Worker& worker : group_.workers) {
    for (OutputStream& stream : worker.streams) {
      if (!stream.is_open() || stream.is_held_up()) continue;
      streams.push_back(&stream);
      entries.push_back({stream.fd(), POLLIN, 0});
    }
  }
  const int64_t deadline = std::min(
      next_deadline_ns(), group_.errors->next_release_ns().value_or(INT64_MAX));
  poll(entries.data(), entries.size(), milliseconds_until(deadline));
  surroundings_.out.flush();
  surroundings_.err.flush();
  for (size_t i = 0; i < streams.size(); ++i) {
    if (entries[first_stream + i].revents != 0) streams[i]->pump();
  }
  group_.errors->release(base::monotonic_ns());
}

int64_t Attempt::next_deadline_ns() const {
  if (stage_ != Stage::kRunning) {
    return next_look_ns_ > 0 ? std::min(deadline_ns_, next_look_ns_)
                             : deadline_ns_;
  }
  const int64_t next = std::min(next_check_ns_, stalls_.next_ns());
  if (cause_deadline_ns_ == 0) return next;
  return std::min(next, cause_deadline_ns_);
}

void Attempt::set_deadline(double seconds) {
  deadline_ns_ = base::monotonic_ns() +
                 static_cast<int64_t>(seconds * double{base::kNsPerSecond});
}

bool Attempt::is_late() const { return base::monotonic_ns() >= deadline_ns_; }

bool Attempt::has_live_workers() const {
  return std::any_of(group_.workers.begin(), group_.workers.end(),
                     [](const Worker& worker) { return worker.is_alive(); });
}

bool Attempt::has_leaver() const {
  return std::any_of(group_.workers.begin(), group_.workers.end(),
                     [](const Worker& worker) {
                       return worker.end && worker.end->exit_code == 0;
                     });
}

void Attempt::reap() {
  signalfd_siginfo ignored;
  while (read(surroundings_.child_fd, &ignored, sizeof(ignored)) > 0) {
  }
  while (true) {
    int status = 0;
    rusage usage{};
    const pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid > 0) {
      record_end(pid, status, usage);
      continue;
    }
    has_children_ = pid == 0 || errno != ECHILD;
    return;
  }
}

void Attempt::record_end(pid_t pid, int wait_status, const rusage& usage) {
  constexpr int64_t kKibibyte = 1024;
  for (Worker& worker : group_.workers) {
    if (worker.pid != pid) continue;
    const int code = exit_code_of(wait_status);
    group_.errors->set_end(worker.rank, code);
    // A signal that was not sent from here is a separate failure.
    const bool is_foreign_signal = stage_ == Stage::kEnding &&
                                   !is_regrouping_ && code < 0 &&
                                   code != -SIGTERM && code != -asked_signal_;
    worker.end = {.exit_code = code,
                  .unix_time = unix_now(),
                  .on_request = stage_ != Stage::kRunning && !is_foreign_signal,
                  .peak_bytes = usage.ru_maxrss * kKibibyte};
  }
}

// What this node does about ranks that died; false: nobody did, or that is a
// failure.
bool Attempt::recover() {
  if (std::ranges::all_of(group_.workers,
                          [](auto& w) { return w.is_alive(); })) {
    return false;
  }
  if (!surroundings_.keeps_state) return replace_dead();
  if (!held_state(group_.workers).can_go_on) return false;
  surroundings_.link->send(nodes::Ending{.suspends = true});
  suspend();
  return true;
}

bool Attempt::replace_dead() {
  if (!surroundings_.replace || !recovery_.allows(group_.workers)) return false;
  const int generation = recovery_.generation();
  for (const Worker& worker : group_.workers) {
    // One that has just done all its work will not meet a new rank.
    if (worker.is_alive() && !worker.recovery.announce(generation)) {
      return false;
    }
  }
  for (Worker& worker : group_.workers) {
    if (worker.is_alive()) continue;
    for (OutputStream& stream : worker.streams) stream.pump_all();
    surroundings_.err.write("lockstep: " + recovery_text(worker, generation) +
                            "\n");
    group_.errors->set_restarted(worker.rank);
    surroundings_.replace(worker, generation);
  }
  surroundings_.err.flush();
  lacks_spares_ = true;
  return true;
}

// Started when all ranks hold the state, so that ranks which start or recover
// have the CPUs for themselves; and once, so that those which die at once are
// not started again and again.
void Attempt::keep_spares() {
  if (surroundings_.spares == nullptr || is_suspended_) return;
  if (stage_ != Stage::kRunning || !held_state(group_.workers).can_go_on) {
    surroundings_.spares->end();
    return;
  }
  if (!lacks_spares_ ||
      !std::ranges::all_of(group_.workers, [](const Worker& worker) {
        return worker.is_alive() && worker.recovery.is_ready();
      })) {
    return;
  }
  surroundings_.spares->fill();
  lacks_spares_ = false;
}

void Attempt::check_failures() {
  if (stage_ != Stage::kRunning || recover()) return;
  bool has_victim = false;
  bool has_input_error = false;
  for (const Worker& worker : group_.workers) {
    if (!worker.end || worker.end->exit_code == 0) continue;
    const Failure failure = worker.failure();
    // All ranks read the same flags and files: leave the others time to report
    // the same.
    if (is_input_error(failure)) {
      has_input_error = true;
    } else if (is_consequence(failure)) {
      has_victim = true;
    } else {
      end_workers(SIGTERM);
      return;
    }
  }
  if (!has_victim && !has_input_error) return;
  // A rank closes its connections before it has reported why, and a loaded
  // machine or a GPU's memory makes it end much later: leave it time. One that
  // left with 0 has nothing more to report.
  if (victim_ended_ns_ == 0) victim_ended_ns_ = base::monotonic_ns();
  double patience = has_leaver() ? kCauseSeconds : kReportSeconds;
  if (has_input_error) patience = kAgreeSeconds;
  cause_deadline_ns_ =
      victim_ended_ns_ +
      static_cast<int64_t>(patience * double{base::kNsPerSecond});
  if (!has_live_workers() || base::monotonic_ns() >= cause_deadline_ns_) {
    end_workers(SIGTERM);
  }
}

void Attempt::check_collectives() {
  if (stage_ != Stage::kRunning || base::monotonic_ns() < next_check_ns_)
    return;
  next_check_ns_ =
      base::monotonic_ns() +
      static_cast<int64_t>(kCheckSeconds * double{base::kNsPerSecond});
  std::vector<RankSnapshot> ranks;
  ranks.reserve(group_.workers.size());
  for (const Worker& worker : group_.workers) {
    ranks.push_back(worker.snapshot());
  }
  overdue_ = find_overdue(ranks, plan_.timeout_seconds);
  if (!overdue_) check_silence(ranks);
  if (overdue_) end_workers(SIGTERM);
}

void Attempt::check_silence(std::span<const RankSnapshot> ranks) {
  SilenceFinding finding = silence_.look(ranks);
  print(finding.warnings);
  for (const auto& [rank, pid] : finding.warned) stalls_.request(rank, pid);
  if (surroundings_.link != nullptr) {
    // Ranks of other nodes may work.
    stuck_ = std::move(finding.failure);
    surroundings_.link->set_stuck(stuck_.has_value());
    return;
  }
  overdue_ = std::move(finding.failure);
  is_silent_ = overdue_.has_value();
}

void Attempt::tell_stalls() {
  const StallLines lines = stalls_.look(group_.workers);
  print(lines.notes);
  print(lines.stacks);
  if (surroundings_.link == nullptr) return;
  for (const std::string& note : lines.notes) {
    surroundings_.link->send(nodes::Note{note});
  }
}

void Attempt::print(std::span<const std::string> lines) {
  for (const std::string& line : lines) {
    surroundings_.err.write("lockstep: " + line + "\n");
    surroundings_.err.flush();
  }
}

void Attempt::end_workers(int signal) {
  asked_signal_ = signal;
  if (surroundings_.link != nullptr && !is_ordered_) {
    surroundings_.link->send(nodes::Ending{.signal = is_stopped_ ? signal : 0});
  }
  for (Worker& worker : group_.workers) {
    RankSnapshot& rank = snapshots_.emplace_back(worker.snapshot());
    if (!rank.is_alive) continue;
    rank.waiting = waiting_text(rank.pid);
    worker.has_reported = worker.has_error_file();
  }
  for (const Worker& worker : group_.workers) {
    if (!is_stopped_ && !is_regrouping_) worker.status.announce_loss();
    worker.signal_group(signal);
    // A stopped process gets the signal only when it continues.
    worker.signal_group(SIGCONT);
  }
  stage_ = Stage::kEnding;
  set_deadline(plan_.options.shutdown_timeout);
}

std::vector<base::TrainingStatus> Attempt::trainings(Who who) const {
  std::vector<base::TrainingStatus> result;
  for (const Worker& worker : group_.workers) {
    if (who == Who::kAlive && !worker.is_alive()) continue;
    if (const auto training = worker.training.read()) {
      result.push_back(*training);
    }
  }
  return result;
}

// Without it the others wait for nothing.
bool Attempt::has_failed_worker() const {
  return std::ranges::any_of(group_.workers, [this](const Worker& worker) {
    return worker.end && worker.end->exit_code != 0 &&
           worker.end->exit_code != 128 + asked_signal_;
  });
}

// The time to shut down begins when the training is saved.
void Attempt::wait_for_save() {
  next_look_ns_ = 0;
  if (!patience_ || stage_ != Stage::kEnding || has_failed_worker()) return;
  const auto training = combine(trainings(Who::kAlive));
  if (!training || !will_save(*training)) return;
  set_deadline(plan_.options.shutdown_timeout);
  const int64_t now = base::monotonic_ns();
  const std::string words = patience_->take_message(*training, now);
  next_look_ns_ = std::min(patience_->next_ns(), now + base::kNsPerSecond);
  if (!words.empty()) surroundings_.err.write("lockstep: " + words + "\n");
}

void Attempt::advance() {
  wait_for_save();
  if (!has_live_workers()) {
    advance_sweep();
    return;
  }
  if (stage_ == Stage::kRunning || !is_late()) return;
  if (stage_ == Stage::kKilling) {
    survivors_ = find_descendants(getpid());
    stage_ = Stage::kOver;
    return;
  }
  for (const Worker& worker : group_.workers) worker.signal_group(SIGKILL);
  stage_ = Stage::kKilling;
  set_deadline(kUnkillableSeconds);
}

// Processes that workers left behind are children of this process, because it
// is a subreaper: none is left when it has no child.
void Attempt::advance_sweep() {
  if (!has_children_) {
    stage_ = Stage::kOver;
    return;
  }
  if (stage_ < Stage::kSweeping) {
    signal_descendants(SIGTERM);
    signal_descendants(SIGCONT);
    stage_ = Stage::kSweeping;
    set_deadline(kSweepSeconds);
    return;
  }
  if (!is_late()) return;
  survivors_ = kill_descendants(kUnkillableSeconds);
  stage_ = Stage::kOver;
}

// No writer is left, so each pipe holds its rest and then ends. A pipe that
// does not end was handed to a process outside of the job.
void Attempt::drain() {
  std::array<ConsoleStream*, 2> consoles = {&surroundings_.out,
                                            &surroundings_.err};
  for (Worker& worker : group_.workers) {
    for (OutputStream& stream : worker.streams) {
      while (stream.pump()) {
        flush_all(consoles, surroundings_.control.fd());
      }
      if (stream.is_open()) stream.close();
    }
  }
  group_.errors->finish();
  flush_all(consoles, surroundings_.control.fd());
}

}  // namespace lockstep::launch
