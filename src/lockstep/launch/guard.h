// The guard: a process between front and keeper that does nothing but end the
// job when one of them is gone.
//
// Workers and whatever they started are its descendants, and it is a subreaper.
// It has its own session, name and command line, so that neither a signal to
// the launcher's process group nor "pkill lockstep" or "pkill -f PROGRAM" ends
// it together with the other two.
#pragma once

#include <sys/types.h>

#include "lockstep/launch/log_folder.h"

namespace lockstep::launch {

// Waits for the keeper, a child of this process, and returns the exit code of
// the job. Ends all descendants when the keeper was killed or the other end of
// `control_fd` closes: then the front is gone. Removes the log folder unless it
// holds files that matter. The calling process is a subreaper, SIGCHLD is
// blocked; it gets the guard's name.
int guard_keeper(pid_t keeper, int control_fd, const LogFolder& logs);

}  // namespace lockstep::launch
