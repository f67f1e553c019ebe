// Where a training stands: all that a checkpoint holds besides tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/metrics.h"
#include "lockstep/optim/plateau.h"

namespace lockstep::engine {

// Work that is due after a step. A training that is stopped in the middle of it
// does the rest when it is resumed.
struct DueWork {
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

// Losses so far: all of them where checkpoints list them, else only the last,
// so that memory and checkpoints do not grow with the training.
struct LossHistory {
  enum class Keep { kAll, kLast };
  void add(double loss, Keep keep);

  std::vector<double> values = {};
  int64_t count = 0;  // How many were added.
};

struct TrainState {
  int64_t step = 0;            // Optimizer steps done.
  DataPosition position = {};  // Position of the next step.
  DueWork due = {};
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
