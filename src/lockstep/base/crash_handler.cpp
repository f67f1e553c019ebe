#include "lockstep/base/crash_handler.h"

#include <execinfo.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>

namespace lockstep::base {
namespace {

constexpr std::array kCrashSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kMaxFrames = 64;
constexpr int kOwnFrames = 2;        // The handler and the kernel's trampoline.
constexpr unsigned kMaxSeconds = 5;  // Then the process dies without a stack.

// A signal handler has no other way to reach anything.
std::array<char, 4096> crash_path{};
alignas(16) std::array<char, 64 << 10> handler_stack{};
std::atomic<int> crash_signal{0};

// Only async-signal-safe functions from here to handle_crash().

void put(int fd, const char* text) {
  const ssize_t written [[maybe_unused]] = write(fd, text, std::strlen(text));
}

void put_number(int fd, uint64_t value, unsigned base) {
  std::array<char, 24> digits{};
  size_t at = digits.size() - 1;
  do {
    digits[--at] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value > 0);
  put(fd, digits.data() + at);
}

void put_header(int fd, int signal, const siginfo_t& info) {
  std::array<char, 16> thread{};
  prctl(PR_GET_NAME, thread.data());
  put(fd, "signal ");
  put_number(fd, static_cast<uint64_t>(signal), 10);
  if (info.si_code > 0) {
    put(fd, " fault 0x");
    put_number(fd, reinterpret_cast<uint64_t>(info.si_addr), 16);
  } else {
    put(fd, info.si_pid == getpid() ? " raised " : " sent ");
    put_number(fd, static_cast<uint64_t>(info.si_pid), 10);
  }
  put(fd, " thread ");
  put(fd, thread.data());
  put(fd, "\n");
}

// Unwinding may wait for a lock that the crashed thread holds.
void end_stuck_crash(int /*signal*/) {
  const int signal = crash_signal;
  ::signal(signal, SIG_DFL);
  kill(getpid(), signal);
}

void handle_crash(int signal, siginfo_t* info, void* /*context*/) {
  int expected = 0;
  if (!crash_signal.compare_exchange_strong(expected, signal)) {
    for (;;) pause();  // Another thread crashed first; the process ends soon.
  }
  ::signal(SIGALRM, end_stuck_crash);
  alarm(kMaxSeconds);
  int fd = crash_path[0] == '\0'
               ? -1
               : open(crash_path.data(),
                      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) fd = STDERR_FILENO;
  put_header(fd, signal, *info);
  std::array<void*, kMaxFrames> frames{};
  const int count = backtrace(frames.data(), kMaxFrames);
  const int skipped = std::min(kOwnFrames, count);
  backtrace_symbols_fd(frames.data() + skipped, count - skipped, fd);
  // Held back until the handler returns.
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void use_own_stack() {
  stack_t before{};
  if (sigaltstack(nullptr, &before) != 0 || !(before.ss_flags & SS_DISABLE)) {
    return;
  }
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  sigaltstack(&stack, nullptr);
}

}  // namespace

std::filesystem::path crash_file(const Environment& environment) {
  const auto error_file = find(environment, "TORCHELASTIC_ERROR_FILE");
  if (!find(environment, "LOCKSTEP_LAUNCHER") || !error_file) return {};
  return std::filesystem::path(*error_file).parent_path() / kCrashFileName;
}

void install_crash_handler(const std::filesystem::path& file) {
  const std::string path = file.string();
  if (path.size() < crash_path.size()) {
    std::ranges::copy(path, crash_path.begin());
    crash_path[path.size()] = '\0';
  }
  // The first call loads libgcc, which a handler must not do.
  std::array<void*, 1> frame{};
  backtrace(frame.data(), 1);
  use_own_stack();
  for (const int signal : kCrashSignals) {
    struct sigaction before{};
    if (sigaction(signal, nullptr, &before) != 0 ||
        (before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) {
      continue;
    }
    struct sigaction action{};
    action.sa_sigaction = handle_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace lockstep::base
