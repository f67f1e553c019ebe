// Whether a process does anything, and what it waits for, as /proc shows it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace lockstep::launch {

// What a process and its descendants have used since they started.
struct ProcessActivity {
  double cpu_seconds = 0;
  int64_t io_bytes = 0;  // Read and written, also on pipes; 0: not readable.
  int64_t major_faults = 0;  // Pages of mapped files that came from disk.
};

ProcessActivity activity_of(pid_t root);

// True when there was work between two looks that lie `seconds` apart: 5 % of a
// core, or any reading or writing. Threads that wake up now and then to wait
// again use less.
bool has_worked(const ProcessActivity& before, const ProcessActivity& after,
                double seconds);

// "sleeping in pipe_read on /data/a.png": the state of the process, with the
// kernel's function and the file where known, then of threads that wait for a
// disk, a device or a file.
std::string waiting_text(pid_t pid);

}  // namespace lockstep::launch
