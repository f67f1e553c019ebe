// State of a training: everything in a checkpoint except tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/metrics.h"
#include "lockstep/optim/plateau.h"

namespace lockstep::engine {

// Work that is due after a step. If training stops in the middle of it, the
// rest is done after resuming.
struct DueWork {
  std::optional<Step> logging = {};  // The step that is not logged yet.
  bool validation = false;
  bool sampling = false;
  bool saving = false;
  bool scoring = false;
};

// The best validation so far.
struct Best {
  std::optional<double> value = {};
  int64_t step = 0;
  Metrics metrics = {};
};

// Losses so far: all of them if the checkpoint layout lists them, else only the
// last one, so that memory and checkpoints do not grow.
struct LossHistory {
  enum class Keep { kAll, kLast };
  void add(double loss, Keep keep);

  std::vector<double> values = {};
  int64_t count = 0;  // Number of losses added.
};

struct TrainState {
  int64_t step = 0;            // Optimizer steps done.
  DataPosition position = {};  // Position of the next step.
  DueWork due = {};
  int64_t logged_step = -1;  // The last one whose running sums were taken.
  // Sums over the current epoch.
  double epoch_loss_sum = 0;
  double epoch_loss_weight = 0;
  LossHistory train_losses = {};  // One per epoch.
  LossHistory val_losses = {};    // One per validation.
  Best best = {};
  // The last observation that counted as progress, for early stopping.
  std::optional<double> progress = {};
  int64_t validations_without_progress = 0;
  bool stopped_early = false;
  std::optional<optim::PlateauState> plateau = {};
};

}  // namespace lockstep::engine
