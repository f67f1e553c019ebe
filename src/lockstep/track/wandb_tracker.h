// A run recorded for Weights & Biases, in its own offline format.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/track/system_metrics.h"
#include "lockstep/track/tracker.h"
#include "lockstep/track/wandb_config.h"
#include "lockstep/track/wandb_log.h"
#include "lockstep/track/wandb_resume.h"
#include "lockstep/track/wandb_run.h"

namespace lockstep::track {

// `wandb sync FOLDER` sends what is in folder(). All values of a step are one
// record, which is written when the next step begins or the run ends; until
// then they stand in a file beside it, so that a killed run loses none when it
// goes on.
class WandbTracker : public Tracker {
 public:
  // With `resumed` the run that config.state_file names goes on: same id, same
  // folder, as if it had never gone further than that. When the folder is gone
  // or damaged, a new one gets the same id. When config.run_id is another one,
  // nothing is remembered or the state file is a copy of another run folder's,
  // a new run begins. Throws IoError and ConfigError.
  WandbTracker(WandbConfig config, const std::optional<KeptRecords>& resumed);

  const std::string& run_id() const { return run_.id; }
  const std::filesystem::path& folder() const { return run_.folder; }
  // A sentence when a resumed run could not be continued as expected; else
  // empty.
  const std::string& note() const { return note_; }

  std::string name() const override { return "wandb"; }
  void record(const Record& record) override;
  void console(const ConsoleText& text) override;
  // Measures the machine every 15 s.
  void tick(double unix_time) override;
  void finish(int exit_code) override;

 private:
  std::optional<WandbRun> earlier_run();
  bool go_on(const WandbRun& run, const KeptRecords& kept);
  void begin(const std::string& id);
  void add(std::vector<WandbItem> items);
  void write_step();
  void save_open_step();
  void note_time(double unix_time);
  double runtime_at(double unix_time) const;
  // Numbers the record and writes it.
  template <typename MakeRecord>
  void append(MakeRecord make_record);

  WandbConfig config_;
  WandbRun run_;
  std::string note_;
  std::optional<WandbLog> log_;
  base::FileDescriptor open_step_file_;
  int64_t num_records_ = 0;
  std::optional<WandbStep> step_;
  std::optional<SystemMetrics> system_;
  double last_time_ = 0;
  double next_sample_time_ = 0;
  double earlier_runtime_seconds_ = 0;
};

}  // namespace lockstep::track
