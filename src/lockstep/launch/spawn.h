// Starting one worker process.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/launch/numa.h"

namespace lockstep::launch {

struct SpawnRequest {
  std::string file;
  std::vector<std::string> arguments;
  base::Environment environment;
  int stdout_fd = -1;  // -1: that of this process
  int stderr_fd = -1;
  std::vector<int> kept_fds = {};  // stay open in the worker, by their numbers
  sigset_t signal_mask{};          // of the worker
  CpuList cpus;  // it may run on; empty: those of this process
};

// Starts workers in separate sessions that die with this process, and reports
// whether they could be executed.
class Spawner {
 public:
  Spawner();  // Throws IoError.

  // Returns as soon as the process exists. Throws IoError when the system has
  // no more processes.
  pid_t start(const SpawnRequest& request);

  // Waits until every started process executes its program. The errno of the
  // first one that could not. Throws IoError when one cannot run on its CPUs.
  std::optional<int> wait_for_exec();

 private:
  base::FileDescriptor read_end_;
  base::FileDescriptor write_end_;
};

}  // namespace lockstep::launch
