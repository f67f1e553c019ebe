// What a training prints where there is no terminal.
#include <gtest/gtest.h>

#include "distributed/training.h"

namespace lockstep::testing {
namespace {

size_t count_in(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(TrainOutput, TheFirstStepIsShownWhateverLogEvery) {
  const TempDir folder;
  const auto result =
      run(Training{.world = 2,
                   .folder = folder.path() / "run",
                   .flags = {"--n_steps=5", "--log_every=1000"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "\nstep 1/5 loss ");
  expect_in(result.out, "\nstep 5/5 loss ");
}

TEST(TrainOutput, TheClosingLineIsTheLast) {
  const TempDir folder;
  const auto result = run(Training{
      .world = 2, .folder = folder.path() / "run", .flags = {"--n_steps=2"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string last =
      "\ndone; everything is in " + (folder.path() / "run").string() + "\n";
  EXPECT_TRUE(result.out.ends_with(last)) << result.out;
}

// Ranks that the launcher ends before they get there print nothing.
TEST(TrainOutput, AWrongFlagIsTheOnlyErrorAndPrintedOnce) {
  const TempDir folder;
  const auto result = run(Training{
      .world = 2, .folder = folder.path() / "run", .flags = {"--bath_size=4"}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count_in(result.err, "did you mean --batch_size?"), 1u)
      << result.err;
  expect_not_in(result.err, "FAILED");
}

TEST(TrainOutput, ARefusalOfRank0IsPrintedOnce) {
  const TempDir folder;
  const Training training{
      .world = 2, .folder = folder.path() / "run", .flags = {"--n_steps=2"}};
  run_well(training);
  const auto result = run(training);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count_in(result.err, "already holds a run"), 1u) << result.err;
}

TEST(TrainOutput, FlagsMayStandBeforeTheRecipe) {
  const TempDir folder;
  const std::string run_folder = folder.path() / "run";
  const auto result = run({WORKER_PROGRAM, "train", "--save_dir", run_folder,
                           "--width", "4", "tiny", "--n_steps=1"},
                          {.environment = {{"CUDA_VISIBLE_DEVICES", ""},
                                           {"OMP_NUM_THREADS", "1"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "done; everything is in " + run_folder);
}

}  // namespace
}  // namespace lockstep::testing
