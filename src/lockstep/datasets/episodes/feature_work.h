// A rank's part of filling a feature cache.
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

namespace lockstep::episodes {

struct FeatureWorkConfig {
  std::shared_ptr<atlas::Encoders> encoders = {};
  std::shared_ptr<FeatureCache> cache = {};
  std::vector<std::shared_ptr<CachedFrames>> sets = {};
  at::Device device = at::kCPU;
  int64_t batch_size = 8;  // Frames at a time.
};

// Every rank checks its own shard of episodes and sentences, and computes what
// is missing or damaged. An entry is written when it is complete: the next run
// continues after a killed one.
class FeatureWork {
 public:
  // Checks, and computes nothing.
  FeatureWork(const FeatureWorkConfig& config, const Shard& shard);

  // Computes the next entry, if one is left.
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

}  // namespace lockstep::episodes
