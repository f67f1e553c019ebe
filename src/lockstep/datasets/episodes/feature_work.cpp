#include "lockstep/datasets/episodes/feature_work.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "lockstep/base/workers.h"

namespace lockstep::episodes {
namespace {

// Joins parts of an episode, in order.
atlas::ViewFeatures joined(const std::vector<atlas::ViewFeatures>& parts) {
  const auto join =
      [&](at::Tensor atlas::ViewFeatures::* member) -> at::Tensor {
    if (!(parts.front().*member).defined()) return {};
    std::vector<at::Tensor> tensors;
    for (const atlas::ViewFeatures& part : parts)
      tensors.push_back(part.*member);
    return at::cat(tensors);
  };
  return {.tokens = join(&atlas::ViewFeatures::tokens),
          .pose = join(&atlas::ViewFeatures::pose),
          .points = join(&atlas::ViewFeatures::points)};
}

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.cpu() : tensor;
}

}  // namespace

FeatureWork::FeatureWork(const FeatureWorkConfig& config, const Shard& shard)
    : config_(config) {
  std::vector<Item> items;
  std::set<std::string> sentences;
  for (const auto& set : config.sets) {
    for (int64_t i = 0; i < set->source().num_episodes(); ++i) {
      items.push_back({.set = set.get(), .episode = i});
      sentences.insert(set->source().sentence(i));
    }
  }
  for (const std::string& sentence : sentences) {
    items.push_back({.sentence = sentence});
  }
  std::vector<Item> own;
  for (size_t i = static_cast<size_t>(shard.rank); i < items.size();
       i += static_cast<size_t>(shard.size)) {
    own.push_back(items[i]);
  }
  std::vector<char> is_missing(own.size());
  base::run_workers(std::ssize(own), 0, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    is_missing[at] = is_there(own[at]) ? 0 : 1;
  });
  for (size_t i = 0; i < own.size(); ++i) {
    if (is_missing[i] != 0) missing_.push_back(own[i]);
  }
}

bool FeatureWork::is_there(const Item& item) const {
  return item.set != nullptr
             ? config_.cache->has_episode(item.set->fingerprint(item.episode))
             : config_.cache->has_sentence(item.sentence);
}

CacheProgress FeatureWork::step() {
  if (num_done_ < missing_.size()) make(missing_[num_done_++]);
  return {.done = static_cast<int64_t>(num_done_),
          .total = std::ssize(missing_)};
}

void FeatureWork::make(const Item& item) {
  const at::NoGradGuard no_grad;
  if (item.set != nullptr) {
    make_episode(*item.set, item.episode);
  } else {
    make_sentence(item.sentence);
  }
}

void FeatureWork::make_episode(const CachedFrames& set, int64_t episode) {
  const int64_t num_frames = set.source().num_frames(episode);
  std::vector<at::Tensor> images(static_cast<size_t>(num_frames));
  base::run_workers(num_frames, 0, [&](int64_t frame) {
    images[static_cast<size_t>(frame)] = set.images(episode, frame);
  });
  std::vector<atlas::ViewFeatures> parts;
  for (int64_t begin = 0; begin < num_frames; begin += config_.batch_size) {
    const int64_t end = std::min(num_frames, begin + config_.batch_size);
    const at::Tensor batch =
        at::stack(std::vector(images.begin() + begin, images.begin() + end))
            .to(config_.device);
    const atlas::ViewFeatures seen = config_.encoders->see(batch);
    parts.push_back({.tokens = on_host(seen.tokens),
                     .pose = on_host(seen.pose),
                     .points = on_host(seen.points)});
  }
  config_.cache->put_episode(set.fingerprint(episode), joined(parts));
}

void FeatureWork::make_sentence(const std::string& sentence) {
  const at::Tensor ids =
      at::tensor(config_.encoders->tokenize(sentence), at::kLong)
          .unsqueeze(0)
          .to(config_.device);
  const at::Tensor mask = at::ones_like(ids, at::kBool);
  config_.cache->put_sentence(sentence,
                              config_.encoders->read(ids, mask)[0].cpu());
}

}  // namespace lockstep::episodes
