// Compares the ranks' weights and optimizer state now and then, and before each
// checkpoint, so that none holds a flipped bit.
#pragma once

#include <cstdint>

#include "lockstep/engine/callback.h"

namespace lockstep::engine {

class ReplicaCheckCallback final : public Callback {
 public:
  // Steps between two checks; 0: never.
  explicit ReplicaCheckCallback(int64_t every) : every_(every) {}

  void begin(TrainLoop& loop) override;
  void after_step(TrainLoop& loop, const Step& step) override;
  bool due(const TrainLoop& loop) const override;
  bool run(TrainLoop& loop) override;

  // Checks unless this step was checked. A rank that differs from a majority
  // gets the majority's values; throws Error when there is none.
  void check_new(TrainLoop& loop);

 private:
  int64_t every_;
  bool is_due_ = false;
  int64_t checked_step_ = 0;  // All ranks were equal after it.
};

}  // namespace lockstep::engine
