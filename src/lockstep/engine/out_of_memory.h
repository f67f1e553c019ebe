// What a training does when the memory for a step cannot be allocated.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/engine/batch_size.h"
#include "lockstep/engine/learner.h"

namespace lockstep::engine {

enum class OnOutOfMemory {
  kFail,
  // Smaller micro-batches, more of them: the step is repeated with the same
  // samples. Only where that gives the same gradient, but for rounding.
  kHalve,
  kHalveAnyway,  // Also where it does not.
};

// Values of --on_oom.
OnOutOfMemory parse_on_out_of_memory(const std::string& name);

// Throws ConfigError in a world of several ranks that cannot connect anew, and
// where smaller micro-batches would change the training: for a trained layer
// with batch statistics.
void check_halving(OnOutOfMemory choice, Learner& learner, const World& world);
// The same for a loss of several terms, which shows in the first step.
void check_halving_of_loss(OnOutOfMemory choice, const Learner& learner);

// Half a micro-batch, rounded up, and twice as many of them.
BatchSize halved(BatchSize batch);

// "out of memory in step 12: ..."
std::string halving_text(int64_t step, const BatchSize& before,
                         const BatchSize& after, int64_t global_batch);

}  // namespace lockstep::engine
