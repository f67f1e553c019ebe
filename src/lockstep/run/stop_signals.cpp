#include "lockstep/run/stop_signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

namespace lockstep::run {
namespace {

constexpr std::array kStopSignals = {SIGTERM, SIGHUP, SIGINT};

// A signal handler can only reach globals.
std::atomic<const base::StatusWriter*> handler_status{nullptr};
std::atomic<int64_t> strongest_stop{0};
std::atomic<bool> save_wanted{false};

StopRequest request_of(int signal) {
  if (signal == SIGTERM) return StopRequest::kTerminate;
  if (signal == SIGINT) return StopRequest::kInterrupt;
  return StopRequest::kHangUp;
}

void handle(int signal) {
  if (signal == SIGUSR1) {
    save_wanted = true;
    return;
  }
  const auto request = static_cast<int64_t>(request_of(signal));
  const base::StatusWriter* status = handler_status;
  const bool is_lost =
      signal == SIGTERM && status != nullptr && status->job_is_lost();
  const bool is_impatient = signal == SIGINT && strongest_stop >= request;
  if (is_lost || is_impatient) _exit(128 + signal);
  int64_t before = strongest_stop;
  while (before < request &&
         !strongest_stop.compare_exchange_weak(before, request)) {
  }
}

void install(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

void install_for_stops(void (*handler)(int)) {
  for (const int signal : kStopSignals) {
    struct sigaction before{};
    // A job under nohup continues when the terminal closes.
    if (signal == SIGHUP && sigaction(signal, nullptr, &before) == 0 &&
        before.sa_handler == SIG_IGN) {
      continue;
    }
    install(signal, handler);
  }
}

// lockstep train starts its worker with USR1 blocked, so that one that arrives
// while libraries are loaded does not kill it.
void let_user_signal_in() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

constexpr double kSlowSeconds = 1;  // A vote takes about a millisecond.

// One number; ranks take the maximum, so the request decides first. The pace is
// that of a rank with this request, equal for all ranks.
int64_t opinion_of(StopRequest request, Pace pace) {
  return 2 * static_cast<int64_t>(request) + static_cast<int64_t>(pace);
}
StopRequest request_in(int64_t opinion) {
  return static_cast<StopRequest>(opinion / 2);
}
Pace pace_in(int64_t opinion) { return static_cast<Pace>(opinion % 2); }

}  // namespace

bool is_stop(StopRequest request) { return request >= StopRequest::kPlanned; }

int exit_code_of(StopRequest request) {
  switch (request) {
    case StopRequest::kHangUp: return 128 + SIGHUP;
    case StopRequest::kInterrupt: return 128 + SIGINT;
    case StopRequest::kTerminate: return 128 + SIGTERM;
    default: return 0;
  }
}

const char* request_text(StopRequest request) {
  switch (request) {
    case StopRequest::kNone: return "no signal";
    case StopRequest::kSave: return "SIGUSR1";
    case StopRequest::kPlanned: return "--stop_after_steps";
    case StopRequest::kHangUp: return "SIGHUP";
    case StopRequest::kInterrupt: return "Ctrl-C";
    case StopRequest::kTerminate: return "SIGTERM";
  }
  return "";
}

StopSignals::StopSignals() {
  strongest_stop = 0;
  save_wanted = false;
  install(SIGUSR1, handle);
  let_user_signal_in();
}

void StopSignals::arm(const base::StatusWriter& status) {
  static base::StatusWriter kept;  // A handler may run during destruction.
  kept = status;
  handler_status = &kept;
  install_for_stops(handle);
}

StopSignals::~StopSignals() {
  install_for_stops(SIG_DFL);
  install(SIGUSR1, SIG_IGN);
}

StopRequest StopSignals::take() {
  const bool save = save_wanted.exchange(false);
  const auto stop = static_cast<StopRequest>(strongest_stop.load());
  return stop != StopRequest::kNone ? stop
         : save                     ? StopRequest::kSave
                                    : StopRequest::kNone;
}

Pace pace_of(double seconds) {
  return seconds < kSlowSeconds ? Pace::kQuick : Pace::kSlow;
}

StopRequest AgreedStop::next(Pace own_pace) {
  auto agreed = vote_.read();
  vote_.post(opinion_of(signals_.take(), own_pace));
  // Nothing is pending if the last vote was read at once.
  const Pace pace = agreed ? pace_in(*agreed) : agreed_pace_;
  if (pace == Pace::kSlow &&
      request_in(agreed.value_or(0)) == StopRequest::kNone) {
    agreed = vote_.read();
  }
  agreed_pace_ = agreed ? pace_in(*agreed) : pace;
  return request_in(agreed.value_or(0));
}

}  // namespace lockstep::run
