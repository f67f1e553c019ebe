// The ability to compute features of the data once and cache them on disk, such
// as those of frozen networks.
#pragma once

#include <cstdint>

#include "lockstep/distributed_sampler.h"
#include "lockstep/export.h"

namespace lockstep {

// Progress of a rank's part.
struct CacheProgress {
  int64_t done = 0;
  int64_t total = 0;
};

// A task implements it in addition to Task. Ranks share the work; later runs
// reuse the cache.
class LOCKSTEP_EXPORT FeatureCaching {
 public:
  virtual ~FeatureCaching() = default;

  // Works for some seconds on this rank's part. Called on all ranks, before the
  // first batch, until every rank is done. The model is on its device already.
  virtual CacheProgress fill_cache(const Shard& shard) = 0;
};

}  // namespace lockstep
