// The error file of whoever started the launcher.
#pragma once

#include "lockstep/base/environment.h"
#include "lockstep/launch/failure_report.h"

namespace lockstep::launch {

// Writes the root cause to the launcher's own TORCHELASTIC_ERROR_FILE, if that
// is set, as torchrun does: the error file of the worker with its exit code as
// message.errorCode, or, when the worker wrote none, how it ended. Never
// throws: the exit code of the job matters more.
void pass_on_root_cause(const base::Environment& environment,
                        const Failure& root) noexcept;

// The same for a job that a signal ended.
void pass_on_signal(const base::Environment& environment, int signal) noexcept;

}  // namespace lockstep::launch
