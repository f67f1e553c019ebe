// Processes of a node that wait to take the place of a rank that dies
// (base/spare.h).
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/launch/plan.h"
#include "lockstep/launch/spawn.h"

namespace lockstep::launch {

// A spare process that is missing costs time and nothing else: whatever goes
// wrong with one, the rank is started without it, and nothing is printed.
class Spares {
 public:
  // The plan outlives this. `signal_mask` is that of the workers.
  Spares(const Plan& plan, const sigset_t& signal_mask)
      : plan_(plan), signal_mask_(signal_mask) {}

  // Starts as many as the plan asks for and are missing: at the beginning, and
  // where one was killed.
  void fill();
  // One that waits becomes the process that would be started with this request.
  // No value: none waits.
  std::optional<pid_t> take(const SpawnRequest& request);
  // They end by themselves, without being waited for.
  void end() { sockets_.clear(); }

 private:
  // Its socket; none: it could not be started.
  base::FileDescriptor start() const;

  const Plan& plan_;
  sigset_t signal_mask_;
  // One for each spare process. When it becomes a rank, a copy of it takes its
  // place at the other end.
  std::vector<base::FileDescriptor> sockets_;
};

}  // namespace lockstep::launch
