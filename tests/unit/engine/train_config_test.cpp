#include <gtest/gtest.h>

#include "lockstep/engine/common_settings.h"
#include "unit/engine/flags.h"

namespace lockstep {
namespace {

using testing::config_error;
using testing::contains;

std::string config_refusal(const std::vector<std::string>& words) {
  return config_error([&] {
    const testing::Flags flags(words);
    engine::check_config(flags.config, flags.options);
  });
}

TEST(TrainConfig, DefaultsAgreeWithEachOther) {
  EXPECT_EQ(config_refusal({}), "");
}

TEST(TrainConfig, ContradictionsNameBothFlags) {
  const std::vector<
      std::pair<std::vector<std::string>, std::vector<std::string>>>
      cases = {
          {{"--warmup_steps=5", "--warmup_epochs=1"},
           {"--warmup_steps", "--warmup_epochs"}},
          {{"--resume=latest", "--overwrite"}, {"--resume", "--overwrite"}},
          {{"--resume=latest", "--fast_dev_run"},
           {"--resume", "--fast_dev_run"}},
          {{"--use_amp", "--precision=fp32"}, {"--use_amp", "--precision"}},
          {{"--overfit_batches=2", "--limit_train_batches=3"},
           {"--overfit_batches", "--limit_train_batches"}}};
  for (const auto& [words, parts] : cases) {
    const std::string text = config_refusal(words);
    for (const std::string& part : parts) {
      EXPECT_TRUE(contains(text, part)) << words[0] << ": " << text;
    }
  }
}

TEST(TrainConfig, EitherOfTwoIsFine) {
  EXPECT_EQ(config_refusal({"--warmup_epochs=1"}), "");
  EXPECT_EQ(config_refusal({"--resume=latest"}), "");
  EXPECT_EQ(config_refusal({"--overwrite"}), "");
  EXPECT_EQ(config_refusal({"--fast_dev_run", "--overwrite"}), "");
}

TEST(TrainConfig, ALimitOfNothingIsAnError) {
  EXPECT_TRUE(contains(config_refusal({"--limit_train_batches=0"}),
                       "--limit_train_batches"));
  EXPECT_TRUE(contains(config_refusal({"--limit_val_batches=0"}),
                       "--limit_val_batches"));
}

TEST(TrainConfig, TheGuidesWordsAreTheSameSettings) {
  const testing::Flags flags(
      {"--output_dir=x", "--num_workers=3", "--learning-rate=0.5"});
  EXPECT_EQ(flags.config.save_dir, "x");
  EXPECT_EQ(flags.config.workers, 3);
  EXPECT_EQ(flags.config.optimization.lr, 0.5);
}

TEST(TrainConfig, NumbersOutsideTheirRangeAreErrors) {
  for (const char* flag :
       {"--epochs=0", "--n_steps=0", "--workers=-1", "--lr=-1", "--seed=-1",
        "--timeout=0", "--log_every=0", "--val_every=0", "--save_every=0",
        "--keep_last=-1", "--ema_decay=1.5", "--max_skipped_steps=0",
        "--overfit_batches=0", "--limit_val_batches=-1", "--lr=nan"}) {
    EXPECT_NE(config_refusal({flag}), "") << flag;
  }
}

}  // namespace
}  // namespace lockstep
