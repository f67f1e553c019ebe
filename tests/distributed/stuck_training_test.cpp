// A training of which one rank is slow, then stuck, in its data: the launcher
// names it and the cause.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "distributed/training.h"

namespace lockstep::testing {
namespace {

constexpr double kLimit = 550;  // of all waits; the machine may be busy
constexpr size_t kWarmUp = 60;  // batches

TEST(StuckTraining, TheRankWithSlowOrStuckDataIsNamed) {
  const TempDir temp;
  const Training training{
      .recipe = "probe",
      .world = 3,
      .folder = temp.path() / "run",
      .flags = {"--record", temp.path().string(), "--late_rank=1",
                "--batch_size=2", "--n_steps=1000000", "--log_every=5",
                "--val_every_epochs=0"}};
  ProcessOptions options = process_options(training);
  options.timeout_seconds = kLimit;
  Process job(command_of(training), options);
  const double deadline = now_seconds() + kLimit;
  const auto comes = [&](const auto& condition) {
    return wait_for(condition, deadline - now_seconds());
  };
  const auto text_comes = [&](const std::string& text) {
    return comes([&] { return contains(job.err(), text); });
  };
  ASSERT_TRUE(comes([&] {
    return std::filesystem::exists(temp.path() / "rank_1.txt") &&
           read_record(temp.path(), 1).size() > kWarmUp;
  })) << job.err();

  std::ofstream(temp.path() / "slow").put('\n');
  ASSERT_TRUE(text_comes("rank 1 slows the job by ")) << job.err();
  EXPECT_TRUE(contains(job.err(), "loading data takes it")) << job.err();
  for (const char* other : {"rank 0 slows", "rank 2 slows"}) {
    EXPECT_FALSE(contains(job.err(), other)) << job.err();
  }
  std::filesystem::remove(temp.path() / "slow");
  EXPECT_TRUE(text_comes("rank 1 no longer slows the job")) << job.err();

  const size_t before = job.err().size();
  std::ofstream(temp.path() / "hang").put('\n');
  ASSERT_TRUE(text_comes("is stuck for")) << job.err();
  ASSERT_TRUE(text_comes("wait_in_dataset(")) << job.err();
  // Who waits for it is not stuck.
  for (const char* other : {"rank 0 (pid", "rank 2 (pid"}) {
    EXPECT_FALSE(contains(job.err().substr(before), other)) << job.err();
  }
  std::filesystem::remove(temp.path() / "hang");
  ASSERT_TRUE(text_comes("goes on after")) << job.err();
  job.send(SIGINT);
  const std::string err = job.wait().err;
  for (const char* text :
       {"in phase loading data, step ", "; ranks 0, 2 wait for it in "}) {
    EXPECT_TRUE(contains(err, text)) << text << "\n" << err;
  }
}

}  // namespace
}  // namespace lockstep::testing
