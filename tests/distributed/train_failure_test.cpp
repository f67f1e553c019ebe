// What goes wrong in a training, and what all ranks decide together.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>

#include "distributed/training.h"
#include "lockstep/base/files.h"

namespace lockstep::testing {
namespace {

// Samples of the first epoch's first step in steps of 12 and of 6.
constexpr int64_t kSteps = 4;

class TrainFailure : public ::testing::Test {
 protected:
  Training probe(int world, const Words& flags) const {
    return {.recipe = "probe",
            .world = world,
            .folder = folder(),
            .flags = flags + Words{"--record", temp_.path().string()}};
  }
  std::filesystem::path folder() const { return temp_.path() / "run"; }

  // Weights before each training batch, equal on all ranks.
  std::vector<uint64_t> shared_checksums(int world) const {
    std::vector<uint64_t> first;
    for (int rank = 0; rank < world; ++rank) {
      std::vector<uint64_t> own;
      for (const Seen& seen : read_record(temp_.path(), rank)) {
        if (seen.phase == "train") own.push_back(seen.checksum);
      }
      if (rank == 0) first = own;
      EXPECT_EQ(own, first) << "rank " << rank;
    }
    return first;
  }

  TempDir temp_;
};

TEST_F(TrainFailure, OneRanksNanIsSkippedByAll) {
  const ProcessResult result =
      run(probe(2, {"--batch_size=3", "--nan_sample=7", "--log_every=2",
                    "--val_every_epochs=0", "--ema_decay=0.5"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.err + result.out,
            "1 of the last steps had a gradient that is NaN or infinite");
  const auto steps = samples_of_steps(temp_.path(), 2);
  ASSERT_EQ(steps.size(), static_cast<size_t>(kSteps));
  const auto weights = shared_checksums(2);
  ASSERT_EQ(weights.size(), steps.size());
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const bool is_broken =
        std::set<int64_t>(steps[i].begin(), steps[i].end()).contains(7);
    EXPECT_EQ(weights[i + 1] == weights[i], is_broken) << "step " << i + 1;
  }
  double skipped = 0;
  for (const double value : metric(folder(), "train/skipped_steps")) {
    skipped += value;
  }
  EXPECT_EQ(skipped, 1);
  for (const double loss : metric(folder(), "train/loss")) {
    EXPECT_TRUE(std::isfinite(loss)) << "a skipped step's loss does not count";
  }
  const Tree checkpoint = last_checkpoint(folder());
  EXPECT_TRUE(weight(checkpoint, "first.weight").isfinite().all().item<bool>());
}

TEST_F(TrainFailure, TooManySkippedStepsEndTheTraining) {
  const ProcessResult result =
      run(probe(2, {"--batch_size=12", "--nan_sample=7", "--epochs=9",
                    "--max_skipped_steps=3", "--val_every_epochs=0"}));
  EXPECT_EQ(result.exit_code, 1) << result.out;
  expect_in(result.err, "NaN or infinite for 3 steps in a row, up to step 3");
  expect_in(result.err, "--max_skipped_steps");
  expect_in(result.err, "Verdict: NaN\n");
  expect_in(result.err, "  next    : lockstep runs show " + folder().string());
  expect_in(base::read_file(folder() / "verdict.json"), "\"cause\":\"NaN\"");
  const auto weights = shared_checksums(2);
  ASSERT_EQ(weights.size(), 3U);
  EXPECT_EQ(weights[2], weights[0]);
}

TEST_F(TrainFailure, OutOfMemoryOnOneRankIsToldWithNumbersAndRemedies) {
  const auto training = probe(2, {"--batch_size=3", "--memory_sample=7"});
  Process process(command_of(training), process_options(training));
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 7) << result.err;
  const std::string cause =
      result.err.substr(std::min(result.err.size(), result.err.find("Root")));
  expect_in(cause, "DeviceError: out of memory on rank ");
  for (const char* part : {"of 2 (CPU, cpu) at step ", "batch of 3 per process",
                           "used by this process (peak ", " free of ",
                           "--batch_size 1", "--dropout 0"}) {
    expect_in(result.err, part);
  }
  EXPECT_TRUE(wait_until_gone(process.marker(), 60).empty());
}

TEST_F(TrainFailure, LackOfHostMemoryIsToldWithNumbersAndRemedies) {
  const ProcessResult result = run(
      probe(2, {"--batch_size=3", "--memory_sample=7", "--host_memory=true"}));
  EXPECT_EQ(result.exit_code, 7) << result.err;
  for (const char* part :
       {"DeviceError: out of memory on rank ", "of 2 (CPU, cpu) at step ",
        "tried to allocate 4503599627370496 bytes", "used by this process",
        "--batch_size 1", "--dropout 0"}) {
    expect_in(result.err, part);
  }
}

TEST_F(TrainFailure, PlateauAndBestModelAgreeOnAllRanks) {
  run_well(probe(3, {"--batch_size=4", "--epochs=4", "--lr_schedule=plateau",
                     "--plateau_patience=0", "--lr_gamma=0.5", "--lr=0.04",
                     "--validation_losses", "5", "4", "6", "3"}));
  EXPECT_EQ(metric(folder(), "val/loss"), (std::vector<double>{5, 4, 6, 3}));
  EXPECT_EQ(
      metric(folder(), "train/learning_rate"),
      (std::vector<double>{0.04, 0.04, 0.04, 0.04, 0.04, 0.04, 0.02, 0.02}));
  const auto weights = shared_checksums(3);
  EXPECT_EQ(std::set<uint64_t>(weights.begin(), weights.end()).size(), 8U);
  const Tree checkpoint = last_checkpoint(folder());
  const TreeView state = checkpoint.at("lockstep").at("state");
  EXPECT_EQ(state.at("best").as_double(), 3);
  EXPECT_EQ(state.at("best_step").as_int(), 8);
}

TEST_F(TrainFailure, EarlyStoppingEndsAfterItsPatience) {
  const ProcessResult result = run(
      probe(2, {"--batch_size=12", "--epochs=9", "--early_stopping_patience=2",
                "--validation_losses", "5", "4", "4.5", "4", "1"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(metric(folder(), "val/loss"), (std::vector<double>{5, 4, 4.5, 4}));
  expect_in(result.out, "early stopping at step 4");
  expect_in(result.out, "is 4 of step 2");
}

TEST_F(TrainFailure, SlowSteadyProgressIsProgress) {
  const ProcessResult result = run(
      probe(1, {"--batch_size=24", "--epochs=7", "--early_stopping_patience=3",
                "--early_stopping_min_delta=0.25", "--validation_losses", "5",
                "4.9", "4.8", "4.7", "4.6", "4.5", "4.4"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_not_in(result.out, "early stopping");
  EXPECT_EQ(metric(folder(), "val/loss").size(), 7U);
}

TEST_F(TrainFailure, WithoutValidationALowerTrainingLossIsBetter) {
  // A higher accuracy of tiny is better; a higher loss never.
  run_well({.folder = folder(),
            .flags = {"--val_samples=0", "--train_samples=16", "--epochs=4",
                      "--batch_size=16", "--lr=0"}});
  const auto losses = metric(folder(), "train/epoch_loss");
  ASSERT_EQ(losses.size(), 4U);
  const auto lowest = std::min_element(losses.begin(), losses.end());
  const Tree checkpoint = last_checkpoint(folder());
  const TreeView state = checkpoint.at("lockstep").at("state");
  EXPECT_EQ(state.at("best").as_double(), *lowest);
  EXPECT_EQ(state.at("best_step").as_int(), lowest - losses.begin() + 1);
}

TEST_F(TrainFailure, AFastDevRunWritesNothingButItsLog) {
  const ProcessResult result =
      run(probe(2, {"--fast_dev_run", "--epochs=3", "--save_every=1"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(files_below(folder()),
            std::vector<std::string>{"fast_dev_run.log"});
  expect_in(result.out, "everything works");
  std::multiset<std::string> phases;
  for (const Seen& seen : read_record(temp_.path(), 0)) {
    phases.insert(seen.phase);
  }
  EXPECT_EQ(phases,
            (std::multiset<std::string>{"train", "validate", "sample"}));
}

TEST_F(TrainFailure, OverfitBatchesRepeatsTheFirstSteps) {
  run_well(probe(1, {"--batch_size=5", "--overfit_batches=2", "--epochs=3"}));
  const auto steps = samples_of_steps(temp_.path(), 1);
  ASSERT_EQ(steps.size(), 6U);
  EXPECT_NE(steps[0], steps[1]);
  for (size_t i = 2; i < 6; ++i) EXPECT_EQ(steps[i], steps[i % 2]);
}

struct Limit {
  Words flags = {};
  size_t steps = 0;      // In an epoch of 6 steps.
  size_t validated = 0;  // Samples of 13 on 2 ranks, batches of 2.
};

// The limits of one run do not need a world: batches are counted per process.
TEST_F(TrainFailure, LimitsAreCountsOrParts) {
  const std::vector<Limit> limits = {
      {{"--limit_train_batches=4", "--limit_val_batches=2"}, 4, 8},
      {{"--limit_train_batches=0.5", "--limit_val_batches=0.25"}, 3, 4},
      {{"--limit_train_batches=100", "--limit_val_batches=100"}, 6, 13}};
  for (const Limit& limit : limits) {
    SCOPED_TRACE(limit.flags[0]);
    const TempDir temp;
    run_well({.recipe = "probe",
              .world = 2,
              .folder = temp.path() / "run",
              .flags = limit.flags + Words{"--batch_size=2", "--val_samples=13",
                                           "--record", temp.path().string()}});
    EXPECT_EQ(samples_of_steps(temp.path(), 2).size(), limit.steps);
    std::set<int64_t> validated;
    for (const int rank : {0, 1}) {
      for (const Seen& seen : read_record(temp.path(), rank)) {
        if (seen.phase != "validate") continue;
        for (const int64_t index : seen.indices) {
          EXPECT_TRUE(validated.insert(index).second) << index << " twice";
        }
      }
    }
    EXPECT_EQ(validated.size(), limit.validated);
  }
}

// Worlds of 1, 2 and 3: 1 and 7 samples divide into none of the larger ones.
TEST_F(TrainFailure, ValidationCountsEachSampleOnceWithTheSameBits) {
  for (const char* size : {"7", "1"}) {
    std::vector<double> alone;
    for (const int world : {1, 2, 3}) {
      const TempDir temp;
      // Nothing is learned: the weights are the same bits in all worlds.
      run_well({.recipe = "probe",
                .world = world,
                .folder = temp.path() / "run",
                .flags = {"--precision=fp64", "--lr=0", "--batch_size=2",
                          "--limit_train_batches=1", "--val_samples", size,
                          "--record", temp.path().string()}});
      const auto errors = metric(temp.path() / "run", "val/error");
      ASSERT_EQ(errors.size(), 1U);
      if (world == 1) alone = errors;
      EXPECT_EQ(errors, alone) << "world " << world << ", size " << size;
    }
    EXPECT_GT(alone.at(0), 0);
  }
}

}  // namespace
}  // namespace lockstep::testing
