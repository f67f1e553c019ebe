#include "lockstep/engine/batch_size.h"

#include <gtest/gtest.h>

#include "unit/engine/flags.h"

namespace lockstep {
namespace {

using testing::config_error;
using testing::contains;

engine::BatchSize batch_size_for(const std::vector<std::string>& words,
                                 int num_processes) {
  const testing::Flags flags(words);
  return engine::resolve_batch_size(flags.config, flags.options, num_processes);
}

std::string text_of(const std::vector<std::string>& words, int num_processes) {
  return engine::batch_size_text(batch_size_for(words, num_processes));
}

std::string batch_size_refusal(const std::vector<std::string>& words,
                               int num_processes) {
  return config_error([&] { batch_size_for(words, num_processes); });
}

TEST(BatchSize, IsPerProcessByDefault) {
  EXPECT_EQ(text_of({"--batch_size", "64"}, 2),
            "effective batch 128 = 64 per process \u00d7 2 processes \u00d7 1 "
            "accumulation");
  EXPECT_EQ(text_of({"--batch_size=3", "--gradient_accumulation_steps=5"}, 1),
            "effective batch 15 = 3 per process \u00d7 1 process \u00d7 5 "
            "accumulation");
}

TEST(BatchSize, AGlobalBatchDividesIntoProcesses) {
  EXPECT_EQ(text_of({"--global_batch_size", "128"}, 2),
            "effective batch 128 = 64 per process \u00d7 2 processes \u00d7 1 "
            "accumulation");
  EXPECT_EQ(
      text_of({"--global_batch_size=24", "--gradient_accumulation_steps=3"}, 4),
      "effective batch 24 = 2 per process \u00d7 4 processes \u00d7 3 "
      "accumulation");
}

TEST(BatchSize, GlobalAndPerProcessBatchGiveTheAccumulation) {
  const engine::BatchSize batch =
      batch_size_for({"--global_batch_size=48", "--batch_size=4"}, 3);
  EXPECT_EQ(batch.accumulation, 4);
  EXPECT_EQ(batch.per_process, 4);
  EXPECT_EQ(batch.effective(), 48);
}

TEST(BatchSize, AllThreeMayBeGivenWhenTheyAgree) {
  const std::vector<std::string> words = {"--global_batch_size=48",
                                          "--batch_size=4",
                                          "--gradient_accumulation_steps=6"};
  EXPECT_EQ(batch_size_for(words, 2).effective(), 48);
  const std::string text = batch_size_refusal(words, 3);
  EXPECT_TRUE(contains(text, "--global_batch_size 48")) << text;
  EXPECT_TRUE(contains(text, "= 72")) << text;
}

TEST(BatchSize, AGlobalBatchThatDoesNotDivideNamesTheNearestThatDo) {
  const std::string uneven = batch_size_refusal({"--global_batch_size=10"}, 4);
  EXPECT_TRUE(contains(uneven, "the number of processes = 4")) << uneven;
  EXPECT_TRUE(contains(uneven, "use 8, 12 or")) << uneven;
  const std::string small =
      batch_size_refusal({"--global_batch_size=3", "--batch_size=2"}, 2);
  EXPECT_TRUE(contains(small, "use 4 or")) << small;
  const std::string accumulated = batch_size_refusal(
      {"--global_batch_size=14", "--gradient_accumulation_steps=3"}, 2);
  EXPECT_TRUE(contains(accumulated, "--gradient_accumulation_steps = 6"))
      << accumulated;
  EXPECT_TRUE(contains(accumulated, "use 12, 18 or")) << accumulated;
}

TEST(BatchSize, OfAnElasticJobDividesIntoAnyNumberOfProcesses) {
  for (const int num_processes : {1, 2, 3, 5, 7}) {
    const engine::BatchSize batch =
        engine::divide_batch(100, 32, num_processes);
    EXPECT_EQ(batch.effective(), 100);
    EXPECT_LE(batch.per_process, 32);
    const int64_t most = batch.per_process * batch.accumulation;
    EXPECT_GE(most * num_processes, 100);
    // No micro-batch too many.
    EXPECT_LT((batch.accumulation - 1) * 32 * num_processes, 100);
  }
  EXPECT_EQ(engine::batch_size_text(engine::divide_batch(100, 64, 3)),
            "effective batch 100 = at most 34 per process \u00d7 3 processes "
            "\u00d7 1 accumulation");
  EXPECT_EQ(engine::batch_size_text(engine::divide_batch(128, 32, 2)),
            "effective batch 128 = 32 per process \u00d7 2 processes \u00d7 2 "
            "accumulation");
}

TEST(BatchSize, OfAnElasticJobLeavesAccumulationToFollow) {
  const testing::Flags all({"--global_batch_size=48", "--batch_size=4",
                            "--gradient_accumulation_steps=6"});
  const auto batch = engine::resolve_batch_size(all.config, all.options, 5,
                                                engine::Shares::kUneven);
  EXPECT_EQ(batch.effective(), 48);
  EXPECT_EQ(batch.per_process, 4);
  EXPECT_EQ(batch.accumulation, 3);
  const testing::Flags accumulated(
      {"--global_batch_size=50", "--gradient_accumulation_steps=3"});
  const auto parts = engine::resolve_batch_size(
      accumulated.config, accumulated.options, 4, engine::Shares::kUneven);
  EXPECT_EQ(parts.effective(), 50);
  EXPECT_EQ(parts.per_process, 5);
  EXPECT_EQ(parts.accumulation, 3);
}

TEST(BatchSize, OfAnElasticJobLeavesNoSampleAloneForABatchNorm) {
  const testing::Flags flags({"--drop_last"});
  const std::string text = config_error([&] {
    engine::check_batch_norm(engine::divide_batch(7, 2, 3), 100, flags.config);
  });
  EXPECT_TRUE(contains(text, "a step of 7 samples ends with one on 3")) << text;
  engine::check_batch_norm(engine::divide_batch(8, 2, 3), 100, flags.config);
}

TEST(BatchSize, NoneOfThemMayBeZero) {
  for (const char* flag : {"--batch_size=0", "--global_batch_size=0",
                           "--gradient_accumulation_steps=0"}) {
    EXPECT_NE(batch_size_refusal({flag}, 1), "") << flag;
  }
}

}  // namespace
}  // namespace lockstep
