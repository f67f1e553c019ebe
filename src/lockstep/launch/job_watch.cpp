#include "lockstep/launch/job_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/signals.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/control.h"
#include "lockstep/launch/process_activity.h"
#include "lockstep/launch/processes.h"

namespace lockstep::launch {
namespace {

// Longer than the keeper's own waits for processes that do not die.
constexpr double kAnswerSeconds = 15;
constexpr double kImpatientSeconds = 2;  // then a second Ctrl-C ends all
constexpr int kPollMilliseconds = 200;   // while something is overdue

}  // namespace

JobWatch::JobWatch(WatchedJob job, const RunOptions& options,
                   const LogFolder& logs)
    : job_(std::move(job)), options_(options), logs_(logs) {
  for (const int fd : {job_.signals.get(), job_.answers.get()}) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
  }
}

int JobWatch::run() {
  while (true) {
    wait_for_events();
    if (job_.answers) read_answers();
    read_signals();
    if (const auto code = guard_exit_code()) return *code;
    if (must_end_job()) return end_job();
  }
}

void JobWatch::wait_for_events() {
  pollfd entries[] = {
      {.fd = job_.signals.get(), .events = POLLIN, .revents = 0},
      {.fd = job_.answers.get(), .events = POLLIN, .revents = 0}};
  const bool is_waiting = unanswered_seconds() > 0 || keeper_gone_ns_ != 0;
  poll(entries, 2, is_waiting ? kPollMilliseconds : -1);
}

void JobWatch::read_signals() {
  signalfd_siginfo info{};
  while (read(job_.signals.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) hand_on(static_cast<int>(info.ssi_signo));
  }
}

void JobWatch::hand_on(int signal) {
  send_signal(job_.control, signal);
  ++num_sent_;
  if (!is_stop_signal(signal)) return;
  stop_signal_ = signal;
  const double waiting = unanswered_seconds();
  if (signal == SIGINT && waiting > kImpatientSeconds) is_impatient_ = true;
  if (waiting == 0) {
    num_sent_at_stop_ = num_sent_;
    stop_sent_ns_ = base::monotonic_ns();
  }
  // Whoever stops the job wants its stopped processes to notice.
  kill(job_.guard, SIGCONT);
  if (const pid_t pid = keeper(); pid > 0) kill(pid, SIGCONT);
}

bool JobWatch::is_stop_signal(int signal) const {
  const auto& signals = options_.stop_signals;
  return std::find(signals.begin(), signals.end(), signal) != signals.end();
}

void JobWatch::read_answers() {
  std::array<char, 64> bytes{};
  ssize_t count = 0;
  while ((count = read(job_.answers.get(), bytes.data(), bytes.size())) > 0) {
    num_answered_ += count;
  }
  if (count != 0) return;
  keeper_gone_ns_ = base::monotonic_ns();
  job_.answers.reset();
}

double JobWatch::unanswered_seconds() const {
  if (num_answered_ >= num_sent_at_stop_ || keeper_gone_ns_ != 0) return 0;
  return std::max(1e-9,
                  base::seconds_between(stop_sent_ns_, base::monotonic_ns()));
}

bool JobWatch::must_end_job() const {
  if (is_impatient_ || unanswered_seconds() > kAnswerSeconds) return true;
  return keeper_gone_ns_ != 0 &&
         base::seconds_between(keeper_gone_ns_, base::monotonic_ns()) >
             kAnswerSeconds;
}

std::optional<int> JobWatch::guard_exit_code() {
  int status = 0;
  if (waitpid(job_.guard, &status, WNOHANG) != job_.guard) return std::nullopt;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  kill_descendants(kKillSeconds);
  logs_.clean(LogFolder::Errors::kKeep);
  base::write_all(
      STDERR_FILENO,
      fmt::format("lockstep: the guard process was killed by {}; all "
                  "processes of the job were ended\n",
                  base::signal_name(WTERMSIG(status))));
  return 1;
}

// The keeper is its only child while it lives.
pid_t JobWatch::keeper() const {
  for (const ProcessInfo& process : find_descendants(job_.guard)) {
    if (process.parent == job_.guard) return process.pid;
  }
  return 0;
}

int JobWatch::end_job() {
  const bool is_keeper_gone = keeper_gone_ns_ != 0;
  const pid_t silent = is_keeper_gone ? job_.guard : keeper();
  base::write_all(
      STDERR_FILENO,
      fmt::format("lockstep: the {} process (pid {}) does not answer, it is "
                  "{}; ending all processes of the job without it\n",
                  is_keeper_gone ? "guard" : "keeper", silent,
                  waiting_text(silent)));
  if (!is_keeper_gone && !is_impatient_) ask_workers();
  kill_descendants(kKillSeconds);
  logs_.clean(LogFolder::Errors::kKeep);
  return stop_signal_ == 0 ? 1 : 128 + stop_signal_;
}

// As the keeper would: the signal, then time to end.
void JobWatch::ask_workers() {
  const pid_t keeper_pid = keeper();
  const auto find_others = [&] {
    auto found = find_descendants(getpid());
    std::erase_if(found, [&](const ProcessInfo& process) {
      return process.pid == job_.guard || process.pid == keeper_pid;
    });
    return found;
  };
  for (const ProcessInfo& process : find_others()) {
    kill(process.pid, stop_signal_);
    kill(process.pid, SIGCONT);
  }
  const int64_t begin = base::monotonic_ns();
  while (!find_others().empty() &&
         base::seconds_between(begin, base::monotonic_ns()) <
             options_.shutdown_timeout) {
    pollfd entry{.fd = job_.signals.get(), .events = POLLIN, .revents = 0};
    poll(&entry, 1, kPollMilliseconds);
    signalfd_siginfo info{};
    while (read(job_.signals.get(), &info, sizeof(info)) == sizeof(info)) {
      if (is_stop_signal(static_cast<int>(info.ssi_signo))) return;
    }
  }
}

}  // namespace lockstep::launch
