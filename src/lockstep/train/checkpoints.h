// A run's checkpoints: what is in them, when they are written, how a run goes
// on from one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/checkpoint/saver.h"
#include "lockstep/comm/world.h"
#include "lockstep/track/console.h"
#include "lockstep/train/learner.h"
#include "lockstep/train/loop.h"
#include "lockstep/train/run_state.h"

namespace lockstep {

struct CheckpointsConfig {
  std::filesystem::path folder = {};
  std::string recipe = {};
  FileNames names = {};
  int64_t keep_last = 3;
  int64_t global_batch = 1;
  std::string config_yaml = {};
};

// The file that --resume means, read by every rank; an undefined Tree when
// 'latest' finds none. Rank 0 chooses. A collective. Throws ConfigError for a
// file that does not exist, FormatError for one that is damaged.
std::optional<Tree> find_checkpoint(const std::string& resume,
                                    const CheckpointsConfig& config,
                                    const World& world, Console& console);

// The weights alone, for eval and sample. Every rank reads the file.
void load_weights(const std::filesystem::path& path, Learner& learner);

// The bucket layout of a checkpoint of as many ranks, else none.
std::optional<BucketLayout> layout_of(const Tree& checkpoint,
                                      const World& world);

// Puts everything back and returns where the run stands. Says what cannot be
// exact: another number of processes or threads.
RunState restore(const Tree& checkpoint, Learner& learner, const World& world,
                 int64_t global_batch, Console& console);

// Rank 0 writes, on a thread beside training; a write that fails is said and
// training goes on. All calls are collectives.
class Checkpoints {
 public:
  Checkpoints(CheckpointsConfig config, Learner& learner, const World& world,
              Console& console);

  void save(const RunState& state, SaveReason reason);
  // Waits for the last write; false when one failed since the last call.
  bool finish();

 private:
  Tree make_tree(const RunState& state);
  void remove_old_files();

  CheckpointsConfig config_;
  Learner& learner_;
  World world_;
  Console& console_;
  BackgroundSaver saver_;
};

}  // namespace lockstep
