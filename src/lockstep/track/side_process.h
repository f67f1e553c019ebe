// A program that runs beside a training and cannot hurt it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"

namespace lockstep::track {

struct SideProgram {
  std::filesystem::path file = {};
  std::vector<std::string> arguments = {};  // From argv[0] on.
  base::Environment environment = {};
  // Its standard output and error are appended here.
  std::filesystem::path output = {};
};

// The process has lower priority than the training, is the first that the
// kernel's out-of-memory killer takes, inherits no open file, has its own
// session, so that signals of a terminal do not reach it, and gets SIGKILL when
// the thread that started it ends. Not thread-safe.
class SideProcess {
 public:
  // Throws IoError. A file that cannot be executed is exit code 127.
  explicit SideProcess(const SideProgram& program);
  ~SideProcess();  // Kills it.
  SideProcess(const SideProcess&) = delete;
  SideProcess& operator=(const SideProcess&) = delete;

  pid_t pid() const { return pid_; }

  // How it ended: an exit code, or a signal as a negative number; no value
  // while it runs. Does not wait.
  std::optional<int> end();

 private:
  pid_t pid_ = 0;
  std::optional<int> end_;
};

}  // namespace lockstep::track
