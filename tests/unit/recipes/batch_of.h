// Batches as a loader makes them in the first epoch of seed 0.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "lockstep/batch.h"
#include "lockstep/dataset.h"
#include "lockstep/random.h"

namespace lockstep::testing {

inline Batch batch_of(const Dataset& data,
                      const std::vector<int64_t>& indices) {
  std::vector<Sample> samples;
  std::vector<int64_t> seeds;
  for (const int64_t index : indices) {
    const uint64_t seed = sample_seed(0, 0, index);
    seeds.push_back(static_cast<int64_t>(seed));
    samples.push_back(data.get(index, seed));
  }
  return {.tensors = data.collate(samples),
          .seeds = torch::tensor(seeds, torch::kLong),
          .indices = indices};
}

}  // namespace lockstep::testing
