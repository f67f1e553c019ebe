// A rank's share of filling a cache of features.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/datasets/episodes/feature_cache.h"
#include "lockstep/datasets/episodes/frame_set.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/feature_caching.h"
#include "lockstep/models/atlas/encoders.h"

namespace lockstep {

struct FeatureWorkConfig {
  std::shared_ptr<Encoders> encoders = {};
  std::shared_ptr<FeatureCache> cache = {};
  std::vector<std::shared_ptr<CachedFrames>> sets = {};
  at::Device device = at::kCPU;
  int64_t batch_size = 8;  // Frames at a time.
};

// Every rank looks at its own share of episodes and sentences, and makes what
// is missing or damaged. An entry is written when it is whole: a killed run is
// gone on with by the next.
class FeatureWork {
 public:
  // Looks, and makes nothing.
  FeatureWork(const FeatureWorkConfig& config, const Shard& share);

  // Makes the next entry, if one is left.
  CacheProgress step();

 private:
  struct Item {
    const CachedFrames* set = nullptr;  // Null: a sentence.
    int64_t episode = 0;
    std::string sentence = {};
  };

  bool is_there(const Item& item) const;
  void make(const Item& item);
  void make_episode(const CachedFrames& set, int64_t episode);
  void make_sentence(const std::string& sentence);

  FeatureWorkConfig config_;
  std::vector<Item> missing_;
  size_t num_done_ = 0;
};

}  // namespace lockstep
