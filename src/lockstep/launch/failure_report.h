// The failure report in torchrun's frame.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/error_file.h"
#include "lockstep/launch/crash_report.h"

namespace lockstep::launch {

constexpr int kConfigExitCode = 2;  // of ConfigError: lockstep/error.h

// One worker that failed.
struct Failure {
  int rank = 0;
  int local_rank = 0;
  std::string place = {};  // "box (node 1)"; empty in a job of one node
  pid_t pid = 0;
  int exit_code = 0;  // negative: died by this signal
  bool on_request =
      false;  // the launcher ended it after it had reported its error
  double unix_time = 0;  // when it failed, as well as known
  std::string error_file;
  std::optional<base::ErrorReport> error;  // what the worker reported itself
  std::vector<std::string> last_lines;     // of its stderr
  int64_t peak_bytes = 0;                  // the most memory it had resident
  std::string meaning = {};   // of its signal, where more is known than usual
  std::string position = {};  // "step 12, forward"; empty for foreign programs
  std::optional<CrashReport> crash = {};  // the stack that it left
  // A whole node is lost, with this many ranks from `rank` on. 0: a worker.
  int num_lost_ranks = 0;
};

// It only reports that another rank is gone: a victim, not the cause.
bool is_consequence(const Failure& failure);

// The worker reported a ConfigError: what the user gave is wrong.
bool is_input_error(const Failure& failure);

// The one that failed first; a victim counts after all others. There is at
// least one.
size_t find_root_cause(std::span<const Failure> failures);

// The exit code that stands for these failures: the root cause's own, or 128
// plus the signal. A root cause that the launcher ended before it could exit,
// or that left with 0, has none; then that of the next cause that has one.
int exit_code_for(std::span<const Failure> failures);

// "exit code 3" or "SIGKILL".
std::string ending_text(const Failure& failure);

constexpr size_t kFrameWidth = 60;

// `extra` is put behind the root cause inside the frame; it may be empty. Ranks
// with the error of the root cause are named there, without blocks of their
// own.
std::string failure_report(const std::string& title, const std::string& host,
                           std::span<const Failure> failures,
                           const std::string& extra, int num_ranks);

}  // namespace lockstep::launch
