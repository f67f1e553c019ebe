// How long a stop waits for a training to save, and what is lost when it did
// not.
//
// Pure functions over the training status of all ranks, and the pace of the
// launcher's messages while it waits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lockstep/base/training_status.h"

namespace lockstep::launch {

// Exit code of a job that was asked to stop and ended before its training was
// saved.
constexpr int kUnsavedExitCode = 8;

// The training of all ranks as one. No value when none of them trains.
std::optional<base::TrainingStatus> combine(
    std::span<const base::TrainingStatus> ranks);

// It will save when the activity under way ends.
bool will_save(const base::TrainingStatus& training);

// Until its checkpoint is complete; no value while nothing was measured.
std::optional<double> expected_seconds(const base::TrainingStatus& training);

// "step 13 is under way ...: waiting for its end and a checkpoint, about ..."
std::string stop_wait_text(const base::TrainingStatus& training);

// "steps 11 to 13 are lost ..."; no value when all is on disk.
std::optional<std::string> loss_text(const base::TrainingStatus& training);

// The wait of one Ctrl-C: for as long as the training takes to save.
class StopPatience {
 public:
  explicit StopPatience(int64_t now_ns) : begin_ns_(now_ns) {}

  // The message to print now; empty most of the time.
  std::string take_message(const base::TrainingStatus& training,
                           int64_t now_ns);
  // When take_message() may have something again.
  int64_t next_ns() const { return next_ns_; }

 private:
  int64_t begin_ns_ = 0;
  int64_t next_ns_ = 0;
  int64_t interval_ns_ = 0;  // Between messages; 0 before the first.
};

}  // namespace lockstep::launch
