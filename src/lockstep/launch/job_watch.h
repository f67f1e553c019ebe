// What the front does while a job runs: hands signals to the keeper, makes sure
// that it answers, and ends the job itself when it does not.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/launch/log_folder.h"
#include "lockstep/launch/options.h"

namespace lockstep::launch {

struct WatchedJob {
  pid_t guard = 0;  // a child of this process
  base::FileDescriptor
      signals;  // a signalfd of all watched signals and SIGCHLD
  base::FileDescriptor control;  // to the keeper
  base::FileDescriptor answers;  // of the keeper
};

class JobWatch {
 public:
  JobWatch(WatchedJob job, const RunOptions& options, const LogFolder& logs);

  // Returns the exit code of the job when no process of it is left.
  int run();

 private:
  void wait_for_events();
  void read_signals();
  void hand_on(int signal);
  void read_answers();
  bool is_stop_signal(int signal) const;
  // The oldest signal to stop that the keeper has not answered; 0: none.
  double unanswered_seconds() const;
  bool must_end_job() const;
  std::optional<int> guard_exit_code();
  int end_job();
  void ask_workers();
  pid_t keeper() const;

  WatchedJob job_;
  const RunOptions& options_;
  const LogFolder& logs_;
  int64_t num_sent_ = 0;
  int64_t num_answered_ = 0;
  int64_t num_sent_at_stop_ = 0;  // num_sent_ at the oldest unanswered stop
  int64_t stop_sent_ns_ = 0;
  int64_t keeper_gone_ns_ = 0;  // 0: it is there
  int stop_signal_ = 0;
  bool is_impatient_ = false;  // Ctrl-C again without an answer
};

}  // namespace lockstep::launch
