// The arithmetic of batch sizes, written out so that nobody has to guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/options.h"
#include "lockstep/train_config.h"

namespace lockstep::engine {

struct BatchSize {
  int64_t per_process = 1;  // Samples of one micro-batch, at most.
  int num_processes = 1;
  int64_t accumulation = 1;
  // Where the processes' shares of a step differ by a sample; else none.
  std::optional<int64_t> uneven_total = {};
  int64_t effective() const {
    return uneven_total.value_or(per_process * num_processes * accumulation);
  }
};

// Whether all processes must have equally many samples of a step.
enum class Shares { kEqual, kUneven };

// From --batch_size, --global_batch_size and --gradient_accumulation_steps: two
// that are given decide the third. Throws ConfigError for a contradiction, with
// values that would fit; where shares may be uneven, accumulation follows from
// the other two.
BatchSize resolve_batch_size(const TrainConfig& config, const Options& options,
                             int num_processes, Shares shares = Shares::kEqual);

// `global` samples per step in micro-batches of at most `largest_micro_batch`.
BatchSize divide_batch(int64_t global, int64_t largest_micro_batch,
                       int num_processes);

// "effective batch 128 = 64 per process x 2 processes x 1 accumulation"
std::string batch_size_text(const BatchSize& batch);

// Batch normalisation needs two samples at a time, of all processes together.
// Throws ConfigError when a step, or the last one of an epoch, has one.
void check_batch_norm(const BatchSize& batch, int64_t num_samples,
                      const TrainConfig& config);

}  // namespace lockstep::engine
