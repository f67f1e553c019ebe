// Callbacks: all that a training does besides its optimizer steps.
#pragma once

#include <string>

#include "lockstep/batch.h"
#include "lockstep/metrics.h"
#include "lockstep/task.h"

namespace lockstep::engine {

class TrainLoop;

// The number that a training is judged by: it decides the best model, early
// stopping and the plateau schedule. Equal on all ranks.
struct Observation {
  double value = 0;
  std::string name = {};
  Better better = Better::kLower;
  Metrics metrics = {};  // All that was measured with it.
};

// The loop calls every function on all ranks alike, in the order of its
// callbacks, so each may contain collectives. What has to survive an
// interruption belongs into TrainLoop::state(), which checkpoints hold.
class Callback {
 public:
  virtual ~Callback() = default;

  virtual void begin(TrainLoop& loop);

  // After each step and before any run(): sets what became due in
  // TrainLoop::state().due, which is empty.
  virtual void after_step(TrainLoop& loop, const Step& step);

  // Whether there is work now. Asked between two steps, also before the first:
  // a resumed training does what was left due.
  virtual bool due(const TrainLoop& loop) const;

  // Does the work. False when a poll ended it: then it stays due, and the
  // training stops.
  virtual bool run(TrainLoop& loop);

  virtual void observe(TrainLoop& loop, const Observation& observation);

  // Between two steps, and between two batches of the work of any callback.
  // False stops the training here.
  virtual bool poll(TrainLoop& loop);

  // After the last step, in reverse order of the callbacks.
  virtual void finish(TrainLoop& loop);
};

}  // namespace lockstep::engine
