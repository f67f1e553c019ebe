// A run's checkpoints: their contents, saving and resuming.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lockstep/base/training_status.h"
#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint_layout.h"
#include "lockstep/engine/learner.h"
#include "lockstep/engine/train_state.h"
#include "lockstep/run/elastic_job.h"
#include "lockstep/run/save_failures.h"
#include "lockstep/track/console.h"
#include "lockstep/world.h"

namespace lockstep::run {

struct CheckpointsConfig {
  std::filesystem::path folder = {};
  std::string recipe = {};
  FileNames names = {};
  CheckpointLayout layout = {};
  int64_t keep_last = 3;
  int64_t global_batch = 1;
  double base_lr = 0;
  uint64_t seed = 0;
  int64_t num_samples = 0;
  std::string config_yaml = {};
  Tree settings = {};
  bool is_dry_run = false;
  bool save_required = false;
  // Its weights cannot be made again when a new rank 0 goes on with later ones.
  bool waits_for_best = false;
  base::TrainingStatusWriter status = {};  // For the launcher.
  std::optional<RunFence> fence = {};      // In an elastic job.
  // Called on the writing thread before each file: records of the steps before
  // it should not be missing when a killed run goes on from it.
  std::function<void()> wait_for_records = {};
};

// The checkpoint that --resume names; no value if 'latest' finds none. Rank 0
// chooses; every rank reads the file once and verifies its checksums. A
// collective. Throws ConfigError if the file does not exist, FormatError if it
// is damaged.
std::optional<Tree> find_checkpoint(const std::string& resume,
                                    const CheckpointsConfig& config,
                                    const World& world,
                                    track::Console& console);

using FrozenNets = std::vector<std::pair<std::string, std::string>>;

struct WeightsTarget {
  torch::nn::Module& model;
  CheckpointLayout layout = {};
  std::vector<std::string> averaged = {};  // Names; buffers have no average.
  FrozenNets frozen = {};                  // TaskInfo::frozen.
};

// Loads the weights or a moving average of them (--ema), for eval and sample.
// Every rank reads the file. Returns the checkpoint's step.
int64_t load_weights(const std::filesystem::path& path,
                     std::optional<int64_t> average,
                     const WeightsTarget& target);

// The folder's checkpoints of steps after `step`.
std::vector<std::filesystem::path> newer_checkpoints(
    const CheckpointsConfig& config, int64_t step);

// Makes the checkpoint of `step` the folder's best model. It is looked for in
// the folder and in the file that --resume names. False if there is none.
bool keep_best(const CheckpointsConfig& config, const std::string& resume,
               int64_t step);

// The checkpoint's bucket layout if it was saved with the same number of ranks.
std::optional<BucketLayout> layout_of(const Tree& checkpoint,
                                      const World& world);

// Restores learner and generators and returns the training state. Warns when
// the result cannot be exact, such as with a different number of processes.
engine::TrainState restore(const Tree& checkpoint, engine::Learner& learner,
                           const CheckpointsConfig& config, const World& world,
                           track::Console& console);

// How a state is saved; one file may have both names.
struct SaveRequest {
  bool as_checkpoint = true;
  bool as_best = false;
  bool is_last = false;  // Training ends: wait until the file is complete.
};

// Rank 0 writes, on a background thread. A failed write is logged and training
// continues, unless CheckpointsConfig::save_required. All calls are
// collectives.
class Checkpoints {
 public:
  Checkpoints(CheckpointsConfig config, engine::Learner& learner,
              const World& world, track::Console& console);

  // With save_required throws IoError on all ranks after too many failed saves
  // in a row.
  void save(const engine::TrainState& state, const SaveRequest& request);
  // Whether the last best model could not be written; the same on all ranks.
  bool has_lost_best();
  // Waits for the last write. Returns what could not be written, as text; empty
  // if nothing failed.
  std::string finish();
  // Why the last save that failed did; empty: none has. Rank 0 knows it.
  std::string last_error() const { return failures_.last_error(); }
  // Whether the folder holds any checkpoint to resume from.
  bool has_any() const;

 private:
  Tree make_tree(const engine::TrainState& state);
  void write(const engine::TrainState& state, const SaveRequest& request,
             const Tree& tree);
  void note_saved(const std::filesystem::path& path);
  void note_failed(const std::filesystem::path& path, const std::string& error);
  void remove_old_files(const std::filesystem::path& saved);

  CheckpointsConfig config_;
  engine::Learner& learner_;
  World world_;
  track::Console& console_;
  // For the file being written: set before the write, read by its thread.
  SaveRequest request_;
  int64_t step_ = 0;
  SaveFailures failures_;
  std::atomic<bool> has_lost_checkpoint_ = false;
  std::atomic<bool> has_lost_best_ = false;
  BackgroundSaver saver_;
};

}  // namespace lockstep::run
