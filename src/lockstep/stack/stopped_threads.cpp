#include "lockstep/stack/stopped_threads.h"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/error.h"

namespace lockstep::stack {
namespace {

constexpr double kStopSeconds = 0.3;
constexpr useconds_t kPauseMicroseconds = 1000;

std::string refusal_text() {
  std::string text = "cannot be traced: " + base::errno_text();
  if (errno == EPERM) {
    text +=
        "; a debugger is attached, or ptrace is not permitted "
        "(kernel.yama.ptrace_scope, a container without CAP_SYS_PTRACE)";
  }
  return text;
}

}  // namespace

StoppedThreads::StoppedThreads(std::span<const pid_t> threads) {
  for (const pid_t thread : threads) {
    if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
      if (held_.empty()) throw IoError(refusal_text());
      continue;  // It has ended.
    }
    held_.push_back({.thread = thread});
    ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
  }
  wait_for_stops();
}

void StoppedThreads::wait_for_stops() {
  const int64_t begin = base::monotonic_ns();
  for (;;) {
    bool are_all_stopped = true;
    for (Held& held : held_) {
      if (held.is_stopped) continue;
      int status = 0;
      if (waitpid(held.thread, &status, __WALL | WNOHANG) == held.thread &&
          WIFSTOPPED(status)) {
        held.is_stopped = true;
        if (status >> 16 != PTRACE_EVENT_STOP) held.signal = WSTOPSIG(status);
      } else {
        are_all_stopped = false;
      }
    }
    if (are_all_stopped ||
        base::seconds_between(begin, base::monotonic_ns()) > kStopSeconds) {
      return;
    }
    usleep(kPauseMicroseconds);
  }
}

bool StoppedThreads::is_stopped(pid_t thread) const {
  return std::ranges::any_of(held_, [thread](const Held& held) {
    return held.thread == thread && held.is_stopped;
  });
}

// A thread that is not stopped is let go when this process ends.
void StoppedThreads::release() {
  for (const Held& held : held_) {
    if (!held.is_stopped) continue;
    ptrace(PTRACE_DETACH, held.thread, nullptr, static_cast<long>(held.signal));
  }
  held_.clear();
}

}  // namespace lockstep::stack
