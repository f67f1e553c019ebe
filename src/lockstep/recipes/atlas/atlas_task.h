// The task of the recipe atlas.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/datasets/episodes/feature_work.h"
#include "lockstep/datasets/episodes/frame_set.h"
#include "lockstep/datasets/episodes/frame_source.h"
#include "lockstep/feature_caching.h"
#include "lockstep/models/atlas/encoders.h"
#include "lockstep/models/atlas/model.h"
#include "lockstep/prediction.h"
#include "lockstep/recipes/atlas/atlas.h"

namespace lockstep::recipes {

class AtlasTask final : public Task, public Prediction, public FeatureCaching {
 public:
  // Without sources it predicts the action for the settings' observation.
  AtlasTask(const AtlasSettings& settings,
            std::shared_ptr<atlas::Encoders> encoders,
            const episodes::FrameSources& sources, Purpose purpose);

  TaskInfo info() const override;
  DataSets data() const override { return sets_; }
  std::shared_ptr<torch::nn::Module> model() const override { return model_; }
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;

  CacheProgress fill_cache(const Shard& shard) override;

  int64_t num_inputs() const override { return sets_.train ? 0 : 1; }
  std::vector<OutputFile> predict(int64_t input) override;

 private:
  bool uses_cache() const;
  void open_sets(const episodes::FrameSources& sources, Purpose purpose);
  std::shared_ptr<const Dataset> make_set(
      std::shared_ptr<const episodes::FrameSource> source);
  at::Device device() const;
  // Moves the encoders to the model's device, once.
  void move_encoders();
  atlas::AtlasInput input_of(const Batch& batch);

  AtlasSettings settings_;
  std::shared_ptr<atlas::Encoders> encoders_;
  // Hashes of the encoders, computed once because that reads all weights.
  std::vector<std::pair<std::string, std::string>> frozen_;
  std::shared_ptr<atlas::AtlasModel> model_;
  DataSets sets_;
  std::string data_text_;
  std::vector<std::shared_ptr<episodes::CachedFrames>> cached_;
  std::unique_ptr<episodes::FeatureWork>
      work_;  // Set by the first fill_cache().
  bool are_encoders_moved_ = false;
};

}  // namespace lockstep::recipes
