// The stack that a crashed worker left, in words (base/crash_handler.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

struct CrashReport {
  std::string cause;               // "invalid address 0x10 in thread train"
  std::vector<std::string> stack;  // "lockstep::f(int)+0x1c (liblockstep.so)"
};

// No value without a usable file.
std::optional<CrashReport> read_crash_file(const std::filesystem::path& path);

// One line of backtrace_symbols_fd(), demangled; functions that are not
// exported are looked up in the file.
std::string frame_text(const std::string& line);

}  // namespace lockstep::launch
