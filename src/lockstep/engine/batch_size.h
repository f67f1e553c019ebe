// The arithmetic of batch sizes, written out so that nobody has to guess.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/options.h"
#include "lockstep/train_config.h"

namespace lockstep::engine {

struct BatchSize {
  int64_t per_process = 1;  // Samples of one micro-batch.
  int num_processes = 1;
  int64_t accumulation = 1;
  int64_t effective() const {
    return per_process * num_processes * accumulation;
  }
};

// From --batch_size, --global_batch_size and --gradient_accumulation_steps: two
// that are given decide the third. Throws ConfigError for a contradiction, with
// values that would fit.
BatchSize resolve_batch_size(const TrainConfig& config, const Options& options,
                             int num_processes);

// "effective batch 128 = 64 per process x 2 processes x 1 accumulation"
std::string batch_size_text(const BatchSize& batch);

// Batch normalisation needs two samples at a time, of all processes together.
// Throws ConfigError when a step, or the last one of an epoch, has one.
void check_batch_norm(const BatchSize& batch, int64_t num_samples,
                      const TrainConfig& config);

}  // namespace lockstep::engine
