// What this rank alone knows, written down so that a process which replaces it
// can go on where it died.
#pragma once

#include <cstdint>

#include "lockstep/engine/learner.h"
#include "lockstep/engine/train_state.h"

namespace lockstep::engine {

// Called by the loop, on every rank at the same places.
class RecoveryLog {
 public:
  virtual ~RecoveryLog() = default;

  // Before the first step.
  virtual void begin(Learner& learner, const TrainState& state) = 0;
  // All losses of step number `step` are computed and its gradients are about
  // to be exchanged: from here on others can complete it without this rank. May
  // be captured in a CUDA graph, and is then not called by its replays.
  virtual void before_exchange(Learner& learner, int64_t step) = 0;
  // The update of step number `step` is done, or queued on the device. May be a
  // collective.
  virtual void after_update(Learner& learner, int64_t step) = 0;
  // A step, or a callback's work after it, is complete on this rank. May be a
  // collective.
  virtual void commit(Learner& learner, const TrainState& state) = 0;
  // Memory ran out on this rank: when all have connected anew, they shall go on
  // with micro-batches of at most this many samples.
  virtual void want_micro_batch(int64_t num_samples) = 0;
};

}  // namespace lockstep::engine
