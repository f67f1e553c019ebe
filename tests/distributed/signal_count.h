// Signals that a process handles while it waits for them.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

namespace lockstep::testing {

// From its construction on counts those that have a handler, on whichever
// thread they are handled, and passes them on. One at a time in a process.
class SignalCount {
 public:
  SignalCount() {
    number_ = 0;
    for (const int signal : kSignals) {
      struct sigaction& before = before_[signal];
      sigaction(signal, nullptr, &before);
      if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
        continue;
      handlers_[signal] = before.sa_handler;
      struct sigaction counting = before;
      counting.sa_handler = handle;
      sigaction(signal, &counting, nullptr);
    }
  }
  ~SignalCount() {
    for (const int signal : kSignals) {
      sigaction(signal, &before_[signal], nullptr);
    }
  }
  SignalCount(const SignalCount&) = delete;
  SignalCount& operator=(const SignalCount&) = delete;

  int number() const { return number_; }

 private:
  using Handler = void (*)(int);
  static constexpr std::array kSignals = {SIGHUP, SIGINT, SIGTERM, SIGUSR1};
  static constexpr size_t kBeyond = 32;

  static void handle(int signal) {
    const Handler handler = handlers_[signal];
    handler(signal);
    ++number_;
  }

  // A handler reaches nothing else.
  static inline std::atomic<int> number_ = 0;
  static inline std::array<std::atomic<Handler>, kBeyond> handlers_ = {};
  std::array<struct sigaction, kBeyond> before_ = {};
};

}  // namespace lockstep::testing
