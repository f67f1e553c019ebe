// The stack of a process that dies by SIGSEGV, SIGBUS, SIGFPE, SIGILL or
// SIGABRT.
#pragma once

#include <filesystem>

#include "lockstep/base/environment.h"

namespace lockstep::base {

// The first line of a crash file is "signal 11 fault 0x10 thread NAME", with
// "raised PID" or "sent PID" instead of an address where no instruction caused
// it; the others are frames as backtrace_symbols_fd() writes them.
constexpr const char* kCrashFileName = "crash.txt";

// Beside the error file of a worker of `lockstep run`; empty for other
// processes.
std::filesystem::path crash_file(const Environment& environment);

// Writes the stack to that file, or to stderr when there is none or it cannot
// be written, and lets the process die by the same signal. Signals that already
// have a handler (a sanitizer's, the program's) keep it. Call it once, before
// other threads start.
void install_crash_handler(const std::filesystem::path& file);

}  // namespace lockstep::base
