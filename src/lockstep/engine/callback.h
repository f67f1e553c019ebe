// Callbacks: everything that a training does between optimizer steps.
#pragma once

#include <string>

#include "lockstep/batch.h"
#include "lockstep/metrics.h"
#include "lockstep/task.h"

namespace lockstep::engine {

class TrainLoop;

// The metric for best model, early stopping and plateau schedule. Equal on all
// ranks.
struct Observation {
  double value = 0;
  std::string name = {};
  Better better = Better::kLower;
  Metrics metrics = {};  // All metrics of the same evaluation.
};

// The loop calls every function on all ranks, in the order of its callbacks, so
// each may contain collectives. State that must survive an interruption belongs
// in TrainLoop::state(), which is saved in checkpoints.
class Callback {
 public:
  virtual ~Callback() = default;

  virtual void begin(TrainLoop& loop);

  // Called after each step and before any run(): adds work that became due to
  // TrainLoop::state().due, which starts empty.
  virtual void after_step(TrainLoop& loop, const Step& step);

  // Whether there is work now. Called between steps, and before the first one:
  // a resumed training does work that was still due.
  virtual bool due(const TrainLoop& loop) const;

  // Does the work. False if a poll ended it: the work stays due, and the
  // training stops.
  virtual bool run(TrainLoop& loop);

  virtual void observe(TrainLoop& loop, const Observation& observation);

  // Called between steps, and between batches of any callback's work. False
  // stops the training.
  virtual bool poll(TrainLoop& loop);

  // Called after the last step, in reverse order of the callbacks.
  virtual void finish(TrainLoop& loop);
};

}  // namespace lockstep::engine
