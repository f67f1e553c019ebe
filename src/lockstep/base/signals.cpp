#include "lockstep/base/signals.h"

#include <csignal>
#include <cstring>

namespace lockstep {

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  if (name == nullptr) return "signal " + std::to_string(number);
  return std::string("SIG") + name;
}

std::optional<int> parse_signal(std::string_view name) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (int number = 1; number < NSIG; ++number) {
    const char* known = sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  return std::nullopt;
}

std::string signal_meaning(int number) {
  switch (number) {
    case SIGKILL:
      return "killed from outside; when nobody did, suspect the kernel's "
             "out-of-memory killer";
    case SIGSEGV: return "invalid memory access";
    case SIGBUS:
      return "bus error: a file was shortened while it was mapped, or in a "
             "container /dev/shm is full";
    case SIGABRT:
      return "aborted: a failed assertion, an uncaught exception or the NCCL "
             "watchdog";
    case SIGFPE:
      return "arithmetic error, for example an integer division by zero";
    case SIGILL:
      return "illegal instruction: built for another kind of processor";
    case SIGTERM: return "asked to end";
    case SIGINT: return "interrupted";
    default: return "";
  }
}

}  // namespace lockstep
