// What a training records is what wandb and TensorBoard read.
#include <gtest/gtest.h>

#include <csignal>

#include "distributed/training.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

class TrainRecords : public ::testing::Test {
 protected:
  Training training(int world, const Words& flags) const {
    return {.world = world,
            .folder = temp_.path() / "run",
            .flags =
                Words{"--train_samples=64", "--batch_size=8", "--val_samples=8",
                      "--log_every=1", "--sample_every=4", "--use_wandb"} +
                flags};
  }

  // In a folder of its own, so that "wandb/" is the test's.
  ProcessResult run_here(const Training& training,
                         const std::map<std::string, std::string>& more = {}) {
    ProcessOptions options = process_options(training);
    options.folder = temp_.path();
    for (const char* name : {"WANDB_MODE", "WANDB_DIR", "WANDB_PROJECT",
                             "WANDB_RUN_ID", "WANDB_NAME", "WANDB_ENTITY"}) {
      unsetenv(name);
    }
    options.environment.insert(more.begin(), more.end());
    return run(command_of(training), options);
  }

  void expect_read(int exit_code, int num_images) const {
    const ProcessResult read =
        run({TORCH_PYTHON, PYTHON_SCRIPTS "/train_records.py",
             temp_.path() / "run", temp_.path() / "wandb",
             std::to_string(exit_code), std::to_string(num_images)});
    EXPECT_EQ(read.exit_code, 0) << read.out << read.err;
  }

  std::vector<std::string> wandb_runs() const {
    std::vector<std::string> runs;
    for (const std::string& file : files_below(temp_.path() / "wandb")) {
      if (file.ends_with(".wandb")) runs.push_back(file);
    }
    return runs;
  }

  TempDir temp_;
};

// From the older of two checkpoints: what came after it is recorded once.
TEST_F(TrainRecords, OneRunOfTwoRanksGoesOnAfterAResumeWithoutFoldingBack) {
  const ProcessResult first =
      run_here(training(2, {"--n_steps=11", "--save_every=4"}));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  expect_in(first.out, "wandb: offline run in ");
  expect_read(0, 3);
  const auto runs = wandb_runs();
  const ProcessResult second = run_here(
      training(2, {"--n_steps=12", "--resume",
                   (temp_.path() / "run/checkpoint_step_4.pt").string()}));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(wandb_runs(), runs);
  EXPECT_EQ(metric(temp_.path() / "run", "train/loss").size(), 12U);
  expect_read(0, 3);
}

TEST_F(TrainRecords, AnErrorIsTheExitCodeAndTheLastLine) {
  const ProcessResult result =
      run_here(training(1, {"--lr=1e38", "--max_skipped_steps=2", "--n_steps=9",
                            "--sample_every=100"}));
  ASSERT_EQ(result.exit_code, 1) << result.out;
  expect_read(1, 0);
}

TEST_F(TrainRecords, ASignalIsTheExitCode) {
  const Training long_run =
      training(1, {"--epochs=10000", "--sample_every=1000000"});
  ProcessOptions options = process_options(long_run);
  options.folder = temp_.path();
  Process process(command_of(long_run), options);
  ASSERT_TRUE(process.wait_for_output("step 20/", 120)) << process.err();
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 128 + SIGTERM);
  expect_read(128 + SIGTERM, 0);
}

TEST_F(TrainRecords, TheEnvironmentOfWandbCounts) {
  const Words few = {"--n_steps=1"};
  EXPECT_EQ(run_here(training(1, few), {{"WANDB_MODE", "disabled"}}).exit_code,
            0);
  EXPECT_TRUE(wandb_runs().empty());

  const Words again = few + Words{"--overwrite"};
  const ProcessResult online =
      run_here(training(1, again), {{"WANDB_MODE", "online"},
                                    {"WANDB_DIR", temp_.path() / "elsewhere"},
                                    {"WANDB_RUN_ID", "abc"},
                                    {"PATH", temp_.path()},
                                    {"WANDB_API_KEY", "0123456789secret"}});
  EXPECT_EQ(online.exit_code, 0) << online.err;
  expect_in(online.err, "wandb sync ");
  expect_not_in(online.out + online.err, "0123456789secret");
  const auto files = files_below(temp_.path() / "elsewhere");
  EXPECT_TRUE(std::ranges::any_of(files, [](const std::string& file) {
    return file.ends_with("-abc/run-abc.wandb");
  }));
  for (const std::string& file : files) {
    expect_not_in(base::read_file(temp_.path() / "elsewhere" / file), "secret");
  }

  const ProcessResult wrong =
      run_here(training(1, again), {{"WANDB_MODE", "sometimes"}});
  EXPECT_EQ(wrong.exit_code, 2);
  expect_in(wrong.err, "WANDB_MODE");
  // Refused before --overwrite threw anything away.
  EXPECT_TRUE(fs::exists(temp_.path() / "run/checkpoint_step_1.pt"));
}

TEST_F(TrainRecords, ThatCannotBeOpenedAreSaidAtTheStart) {
  temp_.write("wandb", "a file in the way");
  const ProcessResult result = run_here(training(2, {"--n_steps=1"}));
  EXPECT_EQ(result.exit_code, 2) << result.out;
  expect_in(result.err, "is a file, not a folder; set WANDB_DIR");
  EXPECT_FALSE(fs::exists(temp_.path() / "run"));
}

TEST_F(TrainRecords, OfAnOverwrittenRunAreGone) {
  run_here(training(1, {"--n_steps=3"}));
  const ProcessResult result =
      run_here(training(1, {"--n_steps=2", "--overwrite"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(wandb_runs().size(), 2U);
  EXPECT_EQ(files_below(temp_.path() / "run/tensorboard").size(), 1U);
  EXPECT_EQ(metric(temp_.path() / "run", "train/loss").size(), 2U);
}

TEST_F(TrainRecords, CanBeLeftOut) {
  const ProcessResult result = run_here(
      training(1, {"--n_steps=1", "--no-use_wandb", "--no-tensorboard"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(wandb_runs().empty());
  EXPECT_FALSE(fs::exists(temp_.path() / "run/tensorboard"));
  for (const char* file :
       {"metrics.jsonl", "metrics.csv", "loss.svg", "loss.png"}) {
    EXPECT_TRUE(fs::exists(temp_.path() / "run" / file)) << file;
  }
}

}  // namespace
}  // namespace lockstep::testing
