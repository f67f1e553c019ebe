// The recipe atlas: predicts actions of a robot from two images and a sentence,
// trained on demonstrations with features of two large networks, frozen by
// default.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lockstep/datasets/episodes/frame_source.h"
#include "lockstep/models/atlas/encoders.h"
#include "lockstep/models/atlas/losses.h"
#include "lockstep/models/atlas/model.h"
#include "lockstep/preparation.h"
#include "lockstep/recipe.h"

namespace lockstep::recipes {

// Keys of the original's config files that are accepted, and partly checked.
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
  atlas::EncoderSettings encoders = {};
  episodes::FrameConfig frames = {};
  atlas::AtlasModelConfig model = {};
  atlas::AtlasLossConfig loss = {};
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

class AtlasRecipe final : public Recipe, public Preparation {
 public:
  std::string name() const override { return "atlas"; }
  std::string summary() const override {
    return "actions of a robot from images and a sentence";
  }
  void describe(Settings& settings) override;
  std::unique_ptr<Task> build(const Settings& settings,
                              Purpose purpose) override;
  // Handles data sets to convert; other arguments are settings and fill the
  // feature cache.
  bool takes(const Arguments& arguments) const override;
  std::string prepare(const Arguments& arguments,
                      const Progress& progress) override;

 private:
  void describe_model(Options& options);
  void describe_data(Options& options);
  void describe_training(Options& options);
  void describe_files(Options& options);
  void describe_sample(Options& options);
  void resolve(Settings& settings);

  AtlasSettings settings_;
  std::string log_name_;
};

}  // namespace lockstep::recipes
