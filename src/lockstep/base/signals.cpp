#include "lockstep/base/signals.h"

#include <csignal>
#include <cstring>

namespace lockstep::base {

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
      return "bus error: a file was truncated while it was mapped, or /dev/shm "
             "is full (df -h /dev/shm; in a container docker run "
             "--shm-size=8g)";
    case SIGABRT:
      return "aborted: a failed assertion, an uncaught exception or the NCCL "
             "watchdog";
    case SIGFPE:
      return "arithmetic error, for example an integer division by zero";
    case SIGILL:
      return "illegal instruction: with bf16 on a CPU suspect a virtual "
             "machine "
             "that announces AMX without having it: use --precision fp32 or "
             "set "
             "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16; without bf16 the program "
             "may "
             "be built for another kind of processor";
    case SIGTERM: return "asked to end";
    case SIGINT: return "interrupted";
    default: return "";
  }
}

}  // namespace lockstep::base
