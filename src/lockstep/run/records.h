// The records of a run: creates its trackers, new or resumed.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/track/console.h"
#include "lockstep/track/curve_collector.h"
#include "lockstep/track/recorder.h"
#include "lockstep/train_config.h"

namespace lockstep::run {

struct RunRecordsConfig {
  std::filesystem::path folder = {};  // The run folder.
  std::string recipe = {};
  std::string log = {};  // Below the run folder.
  int num_processes = 1;
  int64_t total_steps = 0;
  RecordsConfig choices = {};
  std::string settings_json = {};
  std::string settings_yaml = {};
  std::vector<std::string> arguments = {};
  base::Environment environment = {};
  track::PlottedMetric best = {};                  // Selects the best model.
  std::optional<track::KeptRecords> resumed = {};  // Unset: a new run.
};

// Call it before anything is written. Throws ConfigError for settings or
// environment variables that cannot be honoured.
void check_records(const RunRecordsConfig& config);

// For the rank that writes. Receives the console's messages; the console must
// outlive it.
class RunRecords {
 public:
  // Throws IoError.
  RunRecords(const RunRecordsConfig& config, track::Console& console);
  ~RunRecords();
  RunRecords(const RunRecords&) = delete;
  RunRecords& operator=(const RunRecords&) = delete;

  // Never waits for a file.
  void record(track::Record record) { recorder_->record(std::move(record)); }
  // Waits until all that was recorded before is written.
  void wait() { recorder_->wait(); }
  // As wait(), for 10 s at most: a disk that holds up records must not cost
  // checkpoints.
  void wait_before_checkpoint() {
    recorder_->wait_for(std::chrono::seconds(10));
  }
  // Waits until everything is written and, with WANDB_MODE=online, for the
  // upload. `last_line` is recorded as the console's last one, unless empty.
  void finish(int exit_code, const std::string& last_line);

 private:
  track::Console& console_;
  std::unique_ptr<track::Recorder> recorder_;
};

}  // namespace lockstep::run
