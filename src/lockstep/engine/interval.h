// How often a callback has work.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/batch.h"

namespace lockstep::engine {

struct Interval {
  std::optional<int64_t> steps = {};
  int64_t epochs = 0;  // 0: never. Used where `steps` is unset.

  bool is_set() const { return steps || epochs > 0; }

  // Whether an interval ends with `step`, the `num_steps`-th of the training.
  bool ends_with(const Step& step, int64_t num_steps) const {
    if (steps) return num_steps % *steps == 0;
    return step.ends_epoch() && epochs > 0 &&
           (step.begin.epoch + 1) % epochs == 0;
  }
};

}  // namespace lockstep::engine
