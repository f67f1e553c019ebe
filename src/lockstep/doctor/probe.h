// Runs a program for a measurement: with a time limit, without a trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/base/error_file.h"

namespace lockstep::doctor {

struct ProbeResult {
  int exit_code = 0;  // Negative: died by this signal.
  bool timed_out = false;
  std::string out;
  std::string err;
  std::optional<base::ErrorReport> error = {};  // Its root cause.
  // "process 7 (name) cannot be killed: ..."; empty when all ended.
  std::string unkillable = {};

  bool is_good() const { return exit_code == 0 && !timed_out; }
  // The last line of `out` that begins with `mark`, without it; empty: none.
  std::string last_line(const std::string& mark) const;
  // One line: the reported error, else the last line of stderr.
  std::string problem() const;
};

// Output and temporary files go to a folder that is removed afterwards. When
// the limit is over, or this process is asked to end (SIGINT, SIGTERM, SIGHUP),
// the program is ended; in the latter case Interrupted is thrown. All processes
// below it are gone when this returns, but for those that the kernel does not
// let go within 10 s. Makes this process a subreaper. Throws IoError when the
// program cannot be started.
ProbeResult run_probe(const std::vector<std::string>& command,
                      base::Environment environment, double limit_seconds);

}  // namespace lockstep::doctor
