// Where a run stands: all that a checkpoint needs besides tensors.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/batch.h"
#include "lockstep/metrics.h"
#include "lockstep/optim/plateau.h"

namespace lockstep {

// Work that is due after a step, in this order. A run that stops in the middle
// of it does the rest when it goes on.
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

// Losses so far: all of them where the recipe's checkpoints list them, else the
// last alone, so that memory and checkpoints do not grow with the run.
struct LossHistory {
  enum class Keep { kAll, kLast };
  void add(double loss, Keep keep);

  std::vector<double> values = {};
  int64_t count = 0;  // Of those that were added.
};

struct RunState {
  int64_t step = 0;            // Optimizer steps done.
  DataPosition position = {};  // Of the next step.
  DueWork due = {};
  // Of the epoch so far.
  double epoch_loss_sum = 0;
  double epoch_loss_weight = 0;
  LossHistory train_losses = {};  // Of whole epochs.
  LossHistory val_losses = {};    // Of validations.
  Best best = {};
  // Of the last validation that counted as progress (early stopping).
  std::optional<double> progress = {};
  int64_t validations_without_progress = 0;
  bool stopped_early = false;
  std::optional<PlateauState> plateau = {};
};

}  // namespace lockstep
