// Starting one worker process.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <map>
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
  // Stay open in the worker, by the variable that holds their number.
  std::map<std::string, int> kept_fds = {};
  sigset_t signal_mask{};  // of the worker
  CpuList cpus;            // it may run on; empty: those of this process
};

// False where it fails (errno is set); nothing to do for an empty list. The
// process 0 is this one.
bool set_cpus(pid_t pid, const CpuList& cpus);

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
