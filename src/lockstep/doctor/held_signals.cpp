#include "lockstep/doctor/held_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace lockstep::doctor {

HeldSignals::HeldSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, &before_);
  children_ = before_;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigdelset(&children_, signal);
  }
  events_ =
      base::FileDescriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

HeldSignals::~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

int HeldSignals::take() const {
  signalfd_siginfo info{};
  return read(events_.get(), &info, sizeof(info)) == sizeof(info)
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

}  // namespace lockstep::doctor
