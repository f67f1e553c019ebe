// A run's checkpoints: what is in them, when they are written, how a run goes
// on from one.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/base/training_status.h"
#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint_layout.h"
#include "lockstep/engine/learner.h"
#include "lockstep/engine/train_state.h"
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
  base::TrainingStatusWriter status = {};  // For the launcher.
};

// The file that --resume means; no value when 'latest' finds none. Rank 0
// chooses, and every rank reads the file once, comparing its checksums. A
// collective. Throws ConfigError for a
// file that does not exist, FormatError for one that is damaged.
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

// The weights alone, or a moving average of them (--ema), for eval and sample.
// Every rank reads the file. Returns the step of the run.
int64_t load_weights(const std::filesystem::path& path,
                     std::optional<int64_t> average,
                     const WeightsTarget& target);

// The checkpoints of the folder with a step beyond `step`.
std::vector<std::filesystem::path> newer_checkpoints(
    const CheckpointsConfig& config, int64_t step);

// Makes the folder's best model that of `step`, from a checkpoint of that step
// in the folder or the file that --resume names. False when there is none.
bool keep_best(const CheckpointsConfig& config, const std::string& resume,
               int64_t step);

// The bucket layout of a checkpoint of as many ranks, else none.
std::optional<BucketLayout> layout_of(const Tree& checkpoint,
                                      const World& world);

// Puts everything back and returns where the run stands. Says what cannot be
// exact: another number of processes or threads.
engine::TrainState restore(const Tree& checkpoint, engine::Learner& learner,
                           const CheckpointsConfig& config, const World& world,
                           track::Console& console);

// What a state is saved as; one file may have both names.
struct SaveRequest {
  bool as_checkpoint = true;
  bool as_best = false;
  bool is_last = false;  // The training ends: the file must be complete before.
};

// Rank 0 writes, on a thread beside training; a write that fails is said and
// training goes on, unless CheckpointsConfig::save_required. All calls are
// collectives.
class Checkpoints {
 public:
  Checkpoints(CheckpointsConfig config, engine::Learner& learner,
              const World& world, track::Console& console);

  // With save_required throws IoError, on all ranks, once too many saves in a
  // row have failed.
  void save(const engine::TrainState& state, const SaveRequest& request);
  // Whether the last best model could not be written; the same on all ranks.
  bool has_lost_best();
  // Waits for the last write. What could not be written, in words; empty when
  // all was.
  std::string finish();
  // Whether the folder holds any checkpoint to resume from.
  bool has_any() const;

 private:
  Tree own_tree(const engine::TrainState& state);
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
  // About the file that is being written: set before, read by its thread.
  SaveRequest request_;
  int64_t step_ = 0;
  SaveFailures failures_;
  std::atomic<bool> has_lost_checkpoint_ = false;
  std::atomic<bool> has_lost_best_ = false;
  BackgroundSaver saver_;
};

}  // namespace lockstep::run
