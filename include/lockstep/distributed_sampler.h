// Which samples each rank reads, and in what order.
//
// A sampler is a pure function of (number of samples, seed, epoch, rank): ranks
// that agree on the first three agree on the whole split without communication.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/export.h"

namespace lockstep {

// What to do when the samples do not divide evenly among the ranks.
enum class Uneven {
  kPad,   // Read the first samples again: every rank reads the same number.
          // Python's default.
  kDrop,  // Leave out the last ones: every rank reads the same number. Python's
          // drop_last.
  kExact,  // Every sample once; ranks may differ by one. For evaluation.
};

struct SamplerConfig {
  uint64_t seed = 0;  // Must be equal on every rank.
  bool shuffle = true;
  Uneven uneven = Uneven::kPad;
};

// One process among `size`.
struct Shard {
  int rank = 0;
  int size = 1;
};

// With kPad and kDrop bit-identical to torch.utils.data.DistributedSampler.
// Immutable; safe to use from several threads.
class LOCKSTEP_EXPORT DistributedSampler {
 public:
  // Throws ConfigError for an empty data set or an impossible shard.
  DistributedSampler(int64_t num_samples, Shard shard,
                     SamplerConfig config = {});

  // This rank's sample indices in reading order.
  std::vector<int64_t> indices(int64_t epoch) const;

  // Length of indices().
  int64_t size() const;

 private:
  std::vector<int64_t> order(int64_t epoch) const;
  int64_t padded_size() const;

  int64_t num_samples_;
  Shard shard_;
  SamplerConfig config_;
};

}  // namespace lockstep
