// `lockstep run` as the fault tests start it.
#pragma once

#include <string>
#include <vector>

#include "support/messages.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {

using Words = std::vector<std::string>;

// "lockstep run OPTIONS sh -c SCRIPT", ready for Process and run().
Words shell_job(const Words& options, const std::string& script);

// "lockstep run OPTIONS python3 -u -c SCRIPT".
Words python_job(const Words& options, const std::string& script);

// "lockstep run OPTIONS..."
Words job(const Words& options);

ProcessResult run_shell(const Words& options, const std::string& script,
                        ProcessOptions process = {});

// TMPDIR is a folder of the test: what a failed job keeps there goes with it.
ProcessOptions with_temp(const TempDir& folder);

int count(const std::string& text, const std::string& part);

// Workers with a child, a child in a session of its own, and an orphan; all
// of them ignore the polite signals.
constexpr const char* kFamily =
    "trap '' TERM INT HUP; sleep 100 & setsid sleep 100 & "
    "(setsid sh -c 'trap \"\" TERM HUP; sleep 100; sleep 100' &); "
    "echo ready $RANK; wait";

// Until both workers have said "ready RANK".
void wait_until_ready(const Process& launcher);
// Until two workers of kFamily run with all their children.
void wait_for_family(const Process& launcher);

// The part of a failure report about the root cause.
std::string cause_in(const std::string& report);
Words sorted_lines(const std::string& text);

// Python functions for scripts that use the job's store as torch does:
// connect(), text() and receive().
extern const char* const kStoreInPython;

// The guard and the keeper below a running launcher; 0 when there is none.
pid_t find_guard(pid_t launcher);
pid_t find_keeper(pid_t launcher);

}  // namespace lockstep::testing
