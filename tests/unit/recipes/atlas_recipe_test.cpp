#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/feature_caching.h"
#include "lockstep/recipes/atlas/atlas.h"
#include "support/temp_dir.h"
#include "unit/recipes/built_task.h"

namespace lockstep {
namespace {

using testing::TempDir;
using Words = std::vector<std::string>;

const Words kSmallAtlas = {"--data_dir=builtin:reach:4",
                           "--vggt_checkpoint=vggt_tiny",
                           "--lang_encoder_name=llama_tiny",
                           "--fusion_hidden_dim=32",
                           "--fusion_heads=4",
                           "--fusion_layers=1",
                           "--geom_output_dim=16",
                           "--dropout=0"};

struct ReadyAtlas : testing::BuiltTask<recipes::AtlasRecipe> {
  explicit ReadyAtlas(const Words& more = {})
      : BuiltTask(testing::with_flags(kSmallAtlas, more)) {
    model->eval();
    while (true) {
      const CacheProgress work = as<FeatureCaching>().fill_cache({});
      if (work.done == work.total) break;
    }
  }

  double loss(const std::vector<int64_t>& samples) {
    return loss_of(batch(samples)).sum.item<double>();
  }
};

TEST(AtlasRecipe, HasTheDefaultsOfTheGuide) {
  recipes::AtlasRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({}, {});
  const TrainConfig& config = line.config();
  EXPECT_EQ(config.data_path, "./dataset");
  EXPECT_EQ(config.save_dir, "./checkpoints");
  EXPECT_EQ(config.epochs, 50);
  EXPECT_EQ(config.batch_size, 8);
  EXPECT_EQ(config.workers, 4);
  EXPECT_EQ(config.optimization.lr, 1e-4);
  EXPECT_EQ(config.optimization.lr_scaling, "linear");
  EXPECT_EQ(config.optimization.weight_decay, 0.01);
  EXPECT_EQ(config.optimization.warmup_steps, 1000);
  EXPECT_EQ(config.optimization.max_grad_norm, 1);
  EXPECT_EQ(config.log_every, 100);
  EXPECT_EQ(config.val_every, 1000);
  EXPECT_EQ(config.save_every, 5000);
  const std::string text = line.config_text();
  for (const char* words :
       {"vggt_checkpoint: facebook/VGGT-1B",
        "lang_encoder_name: meta-llama/Meta-Llama-3-8B", "geom_output_dim: 512",
        "fusion_hidden_dim: 1024", "image_size: 518", "pose_weight: 1",
        "gripper_weight: 0.5", "pose_loss_type: smooth_l1"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

const std::string kShippedFile =
    SOURCE_FOLDER "/share/lockstep/atlas/configs/train_config.yaml";

// On eight processes, as the guide starts it; more steps on fewer.
TEST(AtlasConfig, AsShippedTheBuiltinTaskReachesItsLearningRate) {
  recipes::AtlasRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({"--config=" + kShippedFile, "--no_cache_features"}, {});
  const TrainConfig& config = line.config();
  const int64_t num_samples =
      recipe.build(line.settings(), Purpose::kTrain)->data().train->size();
  const int64_t num_steps =
      num_samples / (8 * config.batch_size) * config.epochs;
  EXPECT_LE(config.optimization.warmup_steps, num_steps / 10);
  EXPECT_LE(config.log_every, num_steps / 10);
  ASSERT_TRUE(config.val_every);
  EXPECT_LE(*config.val_every, num_steps / 5);
}

// The file with what its lines "# REAL: VALUE" say of the next key.
TEST(AtlasConfig, ItsRealLinesAreTheGuidesSettings) {
  std::string real;
  std::string value;
  for (const std::string& row :
       base::split(base::read_file(kShippedFile), '\n')) {
    const size_t mark = row.find("# REAL: ");
    const size_t colon = row.find(": ");
    if (mark != std::string::npos) {
      value = row.substr(mark + 8);
      value = value.substr(0, value.find_first_of(" ,;"));
    } else if (!value.empty() && !base::trim(row).starts_with("#")) {
      real += row.substr(0, colon + 2) + value + "\n";
      value.clear();
    } else {
      real += row + "\n";
    }
  }
  const TempDir temp;
  recipes::AtlasRecipe from_file;
  cli::CommandLine line(Purpose::kTrain, from_file);
  line.parse({"--config=" + temp.write("real.yaml", real)}, {});
  const TrainConfig& config = line.config();
  EXPECT_EQ(config.batch_size, 8);
  EXPECT_EQ(config.optimization.lr, 1e-4);
  EXPECT_EQ(config.optimization.warmup_steps, 1000);
  EXPECT_EQ(config.val_every, 1000);
  // All of it but the project's name is what the recipe does without any file.
  recipes::AtlasRecipe plain;
  cli::CommandLine defaults(Purpose::kTrain, plain);
  defaults.parse({"--wandb_project=atlas-vla"}, {});
  EXPECT_EQ(line.config_text(), defaults.config_text());
}

TEST(AtlasRecipe, ATokenIsNeverKept) {
  recipes::AtlasRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse({"--hf_token=hf_secret"}, {});
  EXPECT_EQ(line.config_text().find("hf_secret"), std::string::npos);
}

TEST(AtlasRecipe, ALossIsTheSumOfItsSamples) {
  const TempDir temp;
  ReadyAtlas ready({"--cache_dir=" + temp.path().string()});
  EXPECT_NEAR(ready.loss({0, 9, 20}), ready.loss({20, 0}) + ready.loss({9}),
              1e-4);
}

TEST(AtlasRecipe, CachedOrNotTheLossIsTheSame) {
  const TempDir temp;
  ReadyAtlas cached({"--cache_dir=" + temp.path().string()});
  ReadyAtlas uncached({"--no_cache_features"});
  EXPECT_FALSE(std::filesystem::is_empty(temp.path()));
  EXPECT_EQ(cached.data.train->size(), uncached.data.train->size());
  EXPECT_NEAR(cached.loss({1, 5, 17}), uncached.loss({1, 5, 17}), 1e-5);
}

TEST(AtlasRecipe, TheGripperFollowsTheData) {
  ReadyAtlas ready({"--no_cache_features"});
  EXPECT_NE(ready.line.config_text().find("gripper_range: minus_one_one"),
            std::string::npos);
}

TEST(AtlasRecipe, FrozenNetsAreNotPartOfTheModelTrainedOnesAre) {
  ReadyAtlas frozen({"--no_cache_features"});
  for (const auto& item : frozen.model->named_parameters()) {
    EXPECT_FALSE(item.key().starts_with("vggt.")) << item.key();
  }
  EXPECT_EQ(frozen.task->info().frozen.size(), 2U);

  ReadyAtlas trained({"--freeze_vggt=false", "--freeze_lang_encoder=false"});
  EXPECT_TRUE(trained.task->info().frozen.empty());
  trained.loss_of(trained.batch({0, 11})).sum.backward();
  const auto parameters = trained.model->named_parameters();
  int64_t num_with_gradient = 0;
  for (const auto& item : parameters) {
    if (!item.key().starts_with("vggt.") &&
        !item.key().starts_with("lang_encoder.")) {
      continue;
    }
    if (item.value().grad().defined()) ++num_with_gradient;
  }
  EXPECT_GT(num_with_gradient, 30);
  for (const char* name : {"vggt.aggregator.patch_embed.cls_token",
                           "lang_encoder.embed_tokens.weight"}) {
    ASSERT_TRUE(parameters.contains(name)) << name;
    EXPECT_GT(parameters[name].grad().abs().sum().item<double>(), 0) << name;
  }
}

TEST(AtlasRecipe, MistakesInSettingsSayWhatToDo) {
  const auto message = [](const Words& more) {
    try {
      ReadyAtlas ready(more);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message({"--image_size=40"}).find("multiple"), std::string::npos);
  EXPECT_NE(message({"--action_dim=6"}).find("7 numbers"), std::string::npos);
  EXPECT_NE(message({"--fusion_heads=5"}).find("fusion_heads"),
            std::string::npos);
  EXPECT_NE(message({"--vggt_checkpoint=facebook/VGGT-1B"})
                .find("hf download facebook/VGGT-1B"),
            std::string::npos);
  EXPECT_NE(message({"--data_dir=/nowhere", "--use_huggingface=true"})
                .find("lockstep prepare atlas --from lerobot"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
