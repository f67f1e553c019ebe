#include "lockstep/launch/keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/error_file.h"
#include "lockstep/base/run_note.h"
#include "lockstep/base/signals.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/terminal.h"
#include "lockstep/error.h"
#include "lockstep/launch/attempt.h"
#include "lockstep/launch/events.h"
#include "lockstep/launch/job_store.h"
#include "lockstep/launch/job_verdict.h"
#include "lockstep/launch/log_file.h"
#include "lockstep/launch/log_folder.h"
#include "lockstep/launch/memory_deaths.h"
#include "lockstep/launch/node_group.h"
#include "lockstep/launch/outer_error_file.h"
#include "lockstep/launch/processes.h"

namespace lockstep::launch {
namespace {

base::FileDescriptor open_child_events() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  base::FileDescriptor events(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!events) throw IoError("cannot watch processes: " + base::errno_text());
  return events;
}

ConsoleStream open_console(int fd, const Plan& plan) {
  const bool is_terminal = isatty(fd) == 1;
  return ConsoleStream(
      fd, is_terminal ? base::terminal_columns(fd, plan.environment) : 0);
}

bool is_same_terminal(const ConsoleStream& a, const ConsoleStream& b) {
  struct stat first{};
  struct stat second{};
  return a.columns() > 0 && b.columns() > 0 && fstat(a.fd(), &first) == 0 &&
         fstat(b.fd(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// For `lockstep board`. The report on the console matters more than this file.
void leave_verdict(const std::filesystem::path& folder,
                   const Verdict& verdict) noexcept {
  try {
    base::write_file_atomically(folder / base::kVerdictFile,
                                verdict_json(verdict));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

class Keeper {
 public:
  Keeper(const Plan& plan, const LogFolder& logs, ControlReader& control,
         const sigset_t& worker_mask)
      : plan_(plan),
        logs_(logs),
        control_(control),
        worker_mask_(worker_mask),
        out_(open_console(STDOUT_FILENO, plan)),
        own_err_(open_console(STDERR_FILENO, plan)),
        err_(is_same_terminal(out_, own_err_) ? out_ : own_err_),
        child_events_(open_child_events()) {
    if (plan.num_spares > 0) spares_.emplace(plan, worker_mask);
  }

  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  int run(std::optional<StoreSocket> port) {
    for (const std::string& note : plan_.notes) say(note);
    port_ = std::move(port);
    if (plan_.nodes.mode != NodesPlan::Mode::kAlone) {
      group_.emplace(plan_, control_,
                     [this](const std::string& text) { say(text); });
    }
    for (int attempt = 0;; ++attempt) {
      JobVerdict verdict = run_attempt(attempt);
      if (suspended_ && !verdict.keeps_state) end_suspended(verdict);
      tell_notices();
      if (!verdict.text.empty()) err_.write(verdict.text);
      err_.flush();
      if (!verdict.is_restart) return finish(verdict);
      if (auto end = wait_for_restart(verdict.delay_seconds)) {
        if (suspended_) end_suspended(*end);
        return finish(*end);
      }
    }
  }

 private:
  void say(const std::string& text) {
    err_.write("lockstep: " + text + "\n");
    err_.flush();
  }

  bool hosts_store() const { return !group_ || group_->is_host(); }

  Spares* spares() { return spares_ ? &*spares_ : nullptr; }

  // Every attempt begins with an empty store.
  std::optional<JobStore> open_store() {
    if (!hosts_store()) return std::nullopt;
    if (!port_) {
      port_ = group_ ? StoreSocket::any(group_->store_address(),
                                        Reach::kOtherMachines)
                     : StoreSocket::any(plan_.master_addr);
    }
    return std::make_optional<JobStore>(
        *port_, group_ ? net::Admission::kEveryone : net::Admission::kOwnUser);
  }

  // `attempt` becomes that of the job, which this node may join later.
  JobVerdict run_attempt(int& attempt) {
    std::optional<JobStore> store = open_store();
    JobWorld world;
    if (group_) {
      NodeGroup::Formed formed = group_->form(
          attempt,
          store ? std::optional<OfferedStore>(
                      {.port = port_->port(), .secret = store->secret()})
                : std::nullopt,
          suspended_ && held_state(suspended_->workers).is_held);
      if (!formed.world) return formed.end;
      world = *std::move(formed.world);
    } else {
      world = world_of_one_node(plan_, attempt, port_->port());
    }
    attempt = world.attempt;
    const int64_t begin = base::monotonic_ns();
    if (suspended_ && world.generation == 0) kill_suspended();
    const AttemptResult result = run_workers(world, store);
    const double seconds = base::seconds_between(begin, base::monotonic_ns());
    JobVerdict verdict =
        group_ ? group_->agree(result, world, judge_, seconds)
               : judge_.judge(result, attempt, seconds, world.num_ranks);
    if (plan_.options.prints_events && !verdict.is_restart) {
      err_.write(end_events(plan_, world, pids_, result));
    }
    is_abandoned_ = result.kind == AttemptResult::Kind::kAbandoned;
    return verdict;
  }

  AttemptResult run_workers(const JobWorld& world,
                            std::optional<JobStore>& store) {
    const auto folder = logs_.make_attempt(world.attempt, plan_.num_processes);
    if (!has_told_folder_) tell_log_folder();
    MemoryWatch memory;
    std::optional<net::JobSecret> secret;
    if (!store && !world.store_secret.empty()) {
      secret.emplace(world.master_port, world.store_secret);
    }
    const bool is_secret_known = !group_ || !world.store_secret.empty();
    GroupPlace place{.world = world,
                     .secret_fd = secret ? secret->fd()
                                  : store && is_secret_known
                                      ? store->secret_fd()
                                      : -1,
                     .folder = folder,
                     .signal_mask = worker_mask_,
                     .losses = &losses_,
                     .generation = world.generation,
                     .spares = spares()};
    WorkerGroup workers = start_workers(place);
    if (plan_.options.prints_events) tell_start(world, workers);
    Surroundings surroundings{.control = control_,
                              .out = out_,
                              .err = err_,
                              .child_fd = child_events_.get(),
                              .link = group_ ? group_->link() : nullptr,
                              .is_elastic = plan_.nodes.is_elastic(),
                              .may_leave = group_ && group_->may_leave(world),
                              .keeps_state = group_ && plan_.recovers_in_memory,
                              .spares = spares()};
    if (plan_.recovers_in_memory && !group_) {
      surroundings.replace = [&](Worker& worker, int generation) {
        place.generation = generation;
        replace_worker(plan_, place, {out_, err_}, workers, worker);
      };
    }
    // Ranks that go on have that of their first start.
    const std::filesystem::path first_folder = workers.workers.front().folder;
    AttemptResult result = Attempt(plan_, workers, surroundings).run();
    if (result.kind == AttemptResult::Kind::kSuspended) {
      suspended_ = std::move(workers);
    }
    if (store) {
      for (const std::string& notice : store->take_notices()) say(notice);
    }
    const MemoryFindings findings = memory.look();
    explain_kills(result.failures, findings);
    result.memory_note = other_kills_text(result.failures, findings);
    result.has_memory_kills = findings.num_kills.value_or(0) > 0;
    if (const auto noted = base::noted_run_folder(first_folder)) {
      result.run_folder = noted->string();
    }
    run_folder_ = result.run_folder;
    for (const ProcessInfo& process : result.survivors) tell_survivor(process);
    return result;
  }

  WorkerGroup start_workers(const GroupPlace& place) {
    if (!suspended_) return start_group(plan_, place, out_, err_);
    WorkerGroup workers = *std::exchange(suspended_, std::nullopt);
    if (!continue_group(plan_, place, {out_, err_}, workers)) {
      throw PeerError(
          "a rank was lost when all had done their work; the last checkpoint "
          "is complete: --resume latest ends the training");
    }
    return workers;
  }

  // Ranks that wait in memory for a world that does not come.
  void kill_suspended() {
    if (spares_) spares_->end();
    const std::vector<ProcessInfo> left = kill_descendants(kKillSeconds);
    for (const ProcessInfo& process : left) tell_survivor(process);
    for (Worker& worker : suspended_->workers) {
      for (OutputStream& stream : worker.streams) {
        stream.pump_all();
        if (stream.is_open()) stream.close();
      }
    }
    suspended_->errors->finish();
    suspended_.reset();
  }

  void end_suspended(JobVerdict& verdict) {
    std::vector<base::TrainingStatus> trainings;
    for (const Worker& worker : suspended_->workers) {
      if (const auto training = worker.training.read()) {
        trainings.push_back(*training);
      }
    }
    kill_suspended();
    // The others have the state.
    if (group_ && group_->leaves_on(verdict.stop_signal)) return;
    if (const auto training = combine(trainings)) {
      if (const auto loss = loss_text(*training)) {
        verdict.text += "lockstep: " + *loss + "\n";
      }
    }
  }

  void tell_survivor(const ProcessInfo& process) {
    say(fmt::format("process {} ({}) cannot be ended: {}", process.pid,
                    process.command, state_name(process.state)));
  }

  void tell_start(const JobWorld& world, const WorkerGroup& workers) {
    pids_.clear();
    for (const Worker& worker : workers.workers) pids_.push_back(worker.pid);
    err_.write(start_events(plan_, world, pids_));
  }

  void tell_notices() {
    if (!group_) return;
    for (const std::string& notice : group_->take_notices()) say(notice);
  }

  bool is_stop_signal(int signal) const {
    const auto& signals = plan_.options.stop_signals;
    return std::find(signals.begin(), signals.end(), signal) != signals.end();
  }

  // What ended the job during the wait; normally nothing.
  std::optional<JobVerdict> wait_for_restart(double seconds) {
    const int64_t begin = base::monotonic_ns();
    while (true) {
      const double left =
          seconds - base::seconds_between(begin, base::monotonic_ns());
      if (left <= 0) return std::nullopt;
      err_.flush();
      pollfd entry{.fd = control_.fd(), .events = POLLIN, .revents = 0};
      poll(&entry, 1, static_cast<int>(left * 1000) + 1);
      for (const int signal : control_.read()) {
        if (!is_stop_signal(signal)) continue;
        say(base::signal_name(signal) +
            (group_ && group_->leaves_on(signal)
                 ? " received, this node leaves the job"
                 : " received, the job does not start again"));
        if (group_) group_->announce_stop(signal);
        return JobVerdict{.exit_code = 128 + signal, .stop_signal = signal};
      }
      if (control_.is_abandoned()) {
        is_abandoned_ = true;
        return JobVerdict{.exit_code = 1};
      }
    }
  }

  int finish(const JobVerdict& verdict) {
    if (verdict.finding && !run_folder_.empty()) {
      leave_verdict(run_folder_, *verdict.finding);
    }
    if (verdict.cause) {
      pass_on_root_cause(plan_.environment, *verdict.cause);
    } else if (verdict.stop_signal != 0) {
      pass_on_signal(plan_.environment, verdict.stop_signal);
    }
    // The guard may be gone, too; otherwise it does this.
    if (is_abandoned_) logs_.clean(LogFolder::Errors::kKeep);
    tell_lost_lines();
    std::array<ConsoleStream*, 2> consoles = {&out_, &err_};
    flush_all(consoles, control_.fd());
    return verdict.exit_code;
  }

  // Without --log-dir the user cannot know where the files are. At the start,
  // because nothing should follow the last line of a training.
  void tell_log_folder() {
    has_told_folder_ = true;
    const RunOptions& options = plan_.options;
    if (!options.log_dir.empty()) return;
    if (options.redirects.is_empty() && options.tee.is_empty() &&
        options.stdout_filters.empty() && options.stderr_filters.empty()) {
      return;
    }
    say("log files are in " + logs_.path().string());
  }

  void tell_lost_lines() {
    if (const std::string lost = losses_.summary(); !lost.empty()) say(lost);
    if (out_.lost_lines() > 0) {
      say(fmt::format("{} line{} could not be written to stdout: {}",
                      out_.lost_lines(), out_.lost_lines() == 1 ? "" : "s",
                      out_.loss_reason()));
    }
  }

  const Plan& plan_;
  const LogFolder& logs_;
  ControlReader& control_;
  sigset_t worker_mask_;
  ConsoleStream out_;
  ConsoleStream own_err_;
  ConsoleStream& err_;  // out_ where both are one terminal, to keep the order
  LogLosses losses_{err_};
  std::vector<pid_t> pids_;  // of the last attempt's workers, for events
  base::FileDescriptor child_events_;
  std::string run_folder_;  // of a training; empty: not known
  JobJudge judge_{plan_};
  std::optional<StoreSocket> port_;
  std::optional<NodeGroup> group_;  // no value: a job of one node
  std::optional<Spares> spares_;    // no value: none are wanted
  // After an attempt whose processes wait in memory for the next one.
  std::optional<WorkerGroup> suspended_;
  bool has_told_folder_ = false;
  bool is_abandoned_ = false;  // the front process is gone
};

// The keeper has no caller that could catch: its errors end here.
int report_error(const std::exception& error, int code) {
  kill_descendants(kKillSeconds);
  base::report_to_launcher(error);
  base::write_all(STDERR_FILENO, fmt::format("lockstep: {}\n", error.what()));
  return code;
}

}  // namespace

int keep_job(const Plan& plan, const LogFolder& logs,
             std::optional<StoreSocket> port, ControlReader& control,
             const sigset_t& worker_mask) {
  try {
    return Keeper(plan, logs, control, worker_mask).run(std::move(port));
  } catch (const ProgramError& error) {
    return report_error(error, error.program_exit_code());
  } catch (const std::exception& error) {
    return report_error(error, exit_code(error));
  }
}

}  // namespace lockstep::launch
