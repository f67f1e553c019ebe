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

  // Starts as many as the plan asks for and are missing.
  void fill();
  // One that waits becomes the process of this request, which it would have
  // been started with. No value: none waits.
  std::optional<pid_t> take(const SpawnRequest& request);
  // That child has ended.
  void forget(pid_t pid);
  // Kills all, without waiting for it.
  void end();

 private:
  struct Spare {
    pid_t pid = 0;
    base::FileDescriptor socket;
  };

  std::optional<Spare> start() const;

  const Plan& plan_;
  sigset_t signal_mask_;
  std::vector<Spare> spares_;
};

}  // namespace lockstep::launch
