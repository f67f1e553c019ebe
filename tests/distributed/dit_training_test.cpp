// The recipe dit learns, alike on any number of processes.
#include <gtest/gtest.h>

#include <numeric>

#include "distributed/training.h"

namespace lockstep::testing {
namespace {

const Words kSmall = {"--data_path=builtin:shapes",
                      "--dim=64",
                      "--depth=3",
                      "--heads=2",
                      "--patch=4",
                      "--lr=1e-3",
                      "--no_use_wandb",
                      "--sample_every=none",
                      "--log_every=1",
                      "--limit_val_batches=1"};

TEST(DitTraining, TheLossFalls) {
  const TempDir temp;
  Training training{
      .recipe = "dit",
      .folder = temp.path(),
      .flags = kSmall + Words{"--batch_size=32", "--n_steps=250"}};
  run_well(training);
  const auto losses = metric(temp.path(), "train/loss");
  ASSERT_EQ(losses.size(), 250U);
  // Zero for every velocity, as the model begins, costs 1 and the mean square
  // of the images.
  EXPECT_GT(losses.front(), 1.2);
  EXPECT_LT(std::accumulate(losses.end() - 25, losses.end(), 0.0) / 25, 0.4);
}

TEST(DitTraining, OneAndTwoProcessesHaveTheSameLosses) {
  const TempDir temp;
  for (const int world : {1, 2}) {
    run_well(
        {.recipe = "dit",
         .world = world,
         .folder = temp.path() / std::to_string(world),
         .flags = kSmall + Words{"--global_batch_size=16", "--n_steps=20"}});
  }
  const auto alone = metric(temp.path() / "1", "train/loss");
  ASSERT_EQ(alone.size(), 20U);
  expect_close(metric(temp.path() / "2", "train/loss"), alone, 1e-5);
  expect_close(metric(temp.path() / "2", "val/loss"),
               metric(temp.path() / "1", "val/loss"), 1e-5);
}

}  // namespace
}  // namespace lockstep::testing
