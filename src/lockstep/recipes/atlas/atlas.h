// The recipe atlas: actions of a robot from two images and a sentence,
// learned from demonstrations on top of two frozen giants.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/workers.h"
#include "lockstep/datasets/episodes/feature_work.h"
#include "lockstep/datasets/episodes/frame_set.h"
#include "lockstep/datasets/episodes/frame_source.h"
#include "lockstep/models/atlas/encoders.h"
#include "lockstep/models/atlas/losses.h"
#include "lockstep/models/atlas/model.h"
#include "lockstep/recipe.h"

namespace lockstep {

// What the original's files may say besides, and what is checked of it.
struct AtlasFileSettings {
  bool use_huggingface = false;
  std::string hf_dataset_name = "physical-intelligence/libero";
  std::optional<std::string> hf_cache_dir = {};
  bool streaming = false;
  std::optional<std::string> token = {};
  int64_t action_dim = 7;
  bool save_code = false;
  std::optional<std::string> wandb_resume = {};
  bool console_output = true;
};

struct AtlasSettings {
  EncoderSettings encoders = {};
  FrameConfig frames = {};
  AtlasModelConfig model = {};
  AtlasLossConfig loss = {};
  AtlasFileSettings file = {};
  std::string gripper_range = "auto";
  bool cache_features = true;
  std::string cache_dir = "./feature_cache";
  int64_t cache_batch_size = 8;
  bool save_to_file = true;
  std::string log_dir = "./logs";
  std::optional<std::string> log_file = {};
  std::string split = "val";
  // One observation, for `lockstep sample`.
  std::string workspace = {};
  std::string wrist = {};
  std::string instruction = {};
};

class AtlasRecipe final : public Recipe {
 public:
  void describe(Options& options, TrainConfig& common) override;
  void resolve_defaults(const Options& options, TrainConfig& common) override;
  TaskInfo facts() const override;
  DataSets open_data(const TrainConfig& common) override;
  DataSets open_eval_data(const TrainConfig& common) override;
  void prepare_sampling(const TrainConfig& common) override;
  std::shared_ptr<torch::nn::Module> make_model() override;
  CacheProgress fill_cache(const Shard& share) override;
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;
  std::vector<OutputFile> predict(int64_t input) override;
  bool prepares_by_settings(
      const std::vector<std::string>& arguments) const override;
  std::string prepare(const std::vector<std::string>& arguments,
                      const ShowProgress& progress) override;

 private:
  void describe_model(Options& options);
  void describe_data(Options& options);
  void describe_training(Options& options);
  void describe_files(Options& options);
  void describe_sample(Options& options);

  void open_encoders();
  bool uses_cache() const;
  GripperRange range_of(const FrameSource& source) const;
  std::shared_ptr<const Dataset> make_set(
      std::shared_ptr<const FrameSource> source);
  FrameSources checked_sources(const TrainConfig& common);
  at::Device device() const;
  // Gives the giants to the model's device, once.
  void move_encoders();
  AtlasInput input_of(const Batch& batch);
  const at::Tensor& actions_of(const Batch& batch) const;

  AtlasSettings settings_;
  std::shared_ptr<Encoders> encoders_;
  // Their hashes: reading all weights is not done twice.
  std::vector<std::pair<std::string, std::string>> frozen_;
  std::vector<std::shared_ptr<CachedFrames>> cached_;
  std::unique_ptr<FeatureWork> work_;
  std::shared_ptr<AtlasModel> model_;
  bool are_encoders_moved_ = false;
  bool has_observation_ = false;
  std::string log_name_;
  std::string data_text_;
};

}  // namespace lockstep
