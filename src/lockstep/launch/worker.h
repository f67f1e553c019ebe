// One worker process as the launcher sees it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/recovery_page.h"
#include "lockstep/base/slot_file.h"
#include "lockstep/base/status.h"
#include "lockstep/base/training_status.h"
#include "lockstep/launch/failure_report.h"
#include "lockstep/launch/output.h"
#include "lockstep/launch/verdict.h"

namespace lockstep::launch {

// How a worker ended.
struct WorkerEnd {
  int exit_code = 0;        // negative: died by this signal
  double unix_time = 0;     // when the launcher saw it
  bool on_request = false;  // the launcher was ending the job already
  int64_t peak_bytes = 0;   // the most memory it had resident
};

struct Worker {
  int local_rank = 0;
  int rank = 0;  // among all nodes
  pid_t pid = 0;
  base::StatusReader status;
  base::TrainingStatusReader training{status.fd()};
  base::RecoveryReader recovery{status.fd()};
  // Outlives the process; null unless ranks are replaced.
  std::shared_ptr<base::SlotFile> slots;
  std::filesystem::path folder;       // of its log and error files
  std::vector<OutputStream> streams;  // those that pass through the launcher
  bool has_stderr_log = false;
  std::optional<size_t> stderr_stream;  // its position among the streams
  std::optional<WorkerEnd> end;
  bool has_reported = false;  // an error, before the launcher ended it

  bool is_alive() const { return pid > 0 && !end; }
  // To the worker and all of its process group.
  void signal_group(int signal) const;
  RankSnapshot snapshot() const;
  bool has_error_file() const;
  // What the report shows about a worker that ended.
  Failure failure() const;
};

// The exit code in a status of waitpid(); negative for a signal.
int exit_code_of(int wait_status);

// Wall clock in seconds with fraction.
double unix_now();

}  // namespace lockstep::launch
