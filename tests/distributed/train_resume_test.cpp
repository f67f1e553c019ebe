// A training that is stopped and resumed is the training that was not stopped.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <csignal>
#include <set>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

pid_t rank_pid(const fs::path& record, int rank) {
  return std::stoi(base::read_file(record / ("pid_" + std::to_string(rank))));
}

// All that a checkpoint has to keep.
const Words kFlags = {
    "--epochs=2",     "--dropout=0.3",    "--ema_decay",      "0.9",
    "0.99",           "--warmup_steps=3", "--sample_every=4", "--log_every=4",
    "--batch_size=2", "--val_samples=13"};

struct Stop {
  int world = 1;
  int signal = SIGTERM;
  std::string phase = {};
  int64_t call = 0;
  Words flags = {};
};

class TrainResume : public ::testing::Test {
 protected:
  Training training(const std::string& name, const Stop& stop) const {
    return {.recipe = "probe",
            .world = stop.world,
            .folder = temp_.path() / name,
            .flags = kFlags + stop.flags};
  }

  Words pausing(const Stop& stop) const {
    return {"--pause_in",   stop.phase,
            "--pause_call", std::to_string(stop.call),
            "--record",     temp_.path().string()};
  }

  bool wait_until_paused(int world) const {
    return wait_for(
        [&] {
          for (int rank = 0; rank < world; ++rank) {
            if (!fs::exists(paused(rank))) return false;
          }
          return true;
        },
        30);
  }

  fs::path paused(int rank) const {
    return temp_.path() / ("paused_" + std::to_string(rank));
  }

  // Stops the training in its pause.
  ProcessResult stop_in_pause(const Stop& stop) const {
    Training stopped = training("stopped", stop);
    stopped.flags = stopped.flags + pausing(stop);
    Process process(command_of(stopped), process_options(stopped));
    EXPECT_TRUE(wait_until_paused(stop.world)) << process.err();
    process.send(stop.signal);
    // A signal that comes between two naps of the pause does not end it.
    wait_for([&] { return find_marked(process.marker()).empty(); }, 3);
    temp_.write("go", "");
    return process.wait();
  }

  void resume(const Stop& stop) const {
    Training resumed = training("stopped", stop);
    resumed.flags = resumed.flags + Words{"--resume=latest"};
    run_well(resumed);
  }

  void expect_as_uninterrupted() const {
    const fs::path whole = temp_.path() / "whole";
    const fs::path stopped = temp_.path() / "stopped";
    EXPECT_EQ(metric_lines(stopped), metric_lines(whole));
    const Tree actual = last_checkpoint(stopped);
    const Tree expected = last_checkpoint(whole);
    expect_equal(learned(actual), learned(expected));
    expect_equal(actual.at("lockstep").at("state").value(),
                 expected.at("lockstep").at("state").value(), "state");
    for (const std::string& name : files_below(whole / "samples")) {
      EXPECT_EQ(base::read_file(stopped / "samples" / name),
                base::read_file(whole / "samples" / name));
    }
    EXPECT_EQ(files_below(stopped / "samples"), files_below(whole / "samples"));
  }

  void stop_and_compare(const Stop& stop) const {
    run_well(training("whole", stop));
    const ProcessResult result = stop_in_pause(stop);
    ASSERT_EQ(result.exit_code, 128 + stop.signal) << result.err << result.out;
    expect_in(result.out, "saving, then ending");
    expect_in(result.out, "resume with --resume latest");
    const auto before = metric_lines(temp_.path() / "stopped");
    ASSERT_LT(before.size(), metric_lines(temp_.path() / "whole").size());
    expect_stopped_inside(stop.phase);
    resume(stop);
    expect_as_uninterrupted();
  }

  void expect_stopped_inside(const std::string& phase) const {
    const Tree checkpoint = last_checkpoint(temp_.path() / "stopped");
    const TreeView due = checkpoint.at("lockstep").at("state").at("due");
    EXPECT_EQ(due.at("validation").as_bool(), phase == "validate");
    EXPECT_EQ(due.at("sampling").as_bool(), phase == "sample");
  }

  TempDir temp_;
};

TEST_F(TrainResume, TermInTheMiddleOfAnEpoch) {
  stop_and_compare({.world = 1,
                    .signal = SIGTERM,
                    .phase = "train",
                    .call = 0,
                    .flags = {"--lr_schedule=cosine", "--precision=fp16"}});
}

TEST_F(TrainResume, CtrlCInsideValidation) {
  stop_and_compare(
      {.world = 2,
       .signal = SIGINT,
       .phase = "validate",
       .call = 9,
       .flags = {"--lr_schedule=plateau", "--plateau_patience=0", "--lr=0.5",
                 "--precision=bf16", "--val_every=2", "--val_samples=16"}});
}

TEST_F(TrainResume, HangUpInsideSampling) {
  // Nine items on three ranks in three calls: there is a boundary inside.
  stop_and_compare({.world = 3,
                    .signal = SIGHUP,
                    .phase = "sample",
                    .call = 0,
                    .flags = {"--batch_size=1", "--val_every=4"}});
}

TEST_F(TrainResume, TermInWarmUpWithAccumulation) {
  stop_and_compare({.world = 2,
                    .signal = SIGTERM,
                    .phase = "train",
                    .call = 1,
                    .flags = {"--gradient_accumulation_steps=2",
                              "--own_normaliser", "--optimizer=sgd",
                              "--max_grad_norm=0.1", "--train_samples=26"}});
}

TEST_F(TrainResume, Usr1SavesAndGoesOn) {
  const Stop stop{.world = 2,
                  .signal = SIGUSR1,
                  .phase = "train",
                  .call = 2,
                  .flags = {"--save_every_epochs=0"}};
  run_well(training("whole", stop));
  const ProcessResult result = stop_in_pause(stop);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "SIGUSR1 at step 4: saving\n");
  EXPECT_TRUE(fs::exists(temp_.path() / "stopped/checkpoint_step_4.pt"));
  expect_as_uninterrupted();
}

// Saved in a validation that then ends; killed later, it is done again.
TEST_F(TrainResume, AValidationThatIsDoneAgainIsToldOnce) {
  const Stop stop{.phase = "validate",
                  .call = 1,
                  .flags = {"--n_steps=6", "--val_every=4"}};
  run_well(training("whole", stop));
  ASSERT_EQ(stop_in_pause({.signal = SIGUSR1,
                           .phase = stop.phase,
                           .call = stop.call,
                           .flags = stop.flags})
                .exit_code,
            0);
  const fs::path stopped = temp_.path() / "stopped";
  ASSERT_EQ(metric_lines(stopped), metric_lines(temp_.path() / "whole"));
  Training resumed = training("stopped", stop);
  resumed.flags =
      resumed.flags +
      Words{"--resume", (stopped / "checkpoint_step_4.pt").string()};
  run_well(resumed);
  EXPECT_EQ(metric_lines(stopped), metric_lines(temp_.path() / "whole"));
}

TEST_F(TrainResume, ASecondCtrlCEndsAtOnceAndNamesTheLostSteps) {
  const Stop stop{.world = 2, .phase = "train", .call = 2};
  Training stopped = training("stopped", stop);
  stopped.flags = stopped.flags + pausing(stop) + Words{"--pause_signals=1000"};
  Process process(command_of(stopped), process_options(stopped));
  ASSERT_TRUE(wait_until_paused(2)) << process.err();
  process.send(SIGINT);
  EXPECT_FALSE(
      wait_for([&] { return find_marked(process.marker()).empty(); }, 0.3));
  const double begin = now_seconds();
  process.send(SIGINT);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 8) << result.err;
  expect_in(result.err, "ended before the training was saved: steps 1 to ");
  EXPECT_LT(now_seconds() - begin, 5);
  EXPECT_TRUE(wait_until_gone(process.marker(), 5).empty());
}

// A cluster may send its signals to the ranks themselves, and not the same.
TEST_F(TrainResume, TheStrongestWishOfAnyRankCounts) {
  const Stop stop{.world = 2, .phase = "train", .call = 2};
  Training stopped = training("stopped", stop);
  stopped.flags = stopped.flags + pausing(stop);
  Process process(command_of(stopped), process_options(stopped));
  ASSERT_TRUE(wait_until_paused(2)) << process.err();
  kill(rank_pid(temp_.path(), 0), SIGUSR1);
  kill(rank_pid(temp_.path(), 1), SIGTERM);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 143) << result.err;
  expect_in(result.out, "SIGTERM at step 4: saving, then ending");
  const Tree checkpoint = last_checkpoint(temp_.path() / "stopped");
  EXPECT_EQ(checkpoint.at("global_step").as_int(), 4);
}

// 24 samples in steps of 8: stopped with two ranks, resumed with three.
TEST_F(TrainResume, AnotherWorldSeesEveryRemainingSampleOnce) {
  const Stop stop{.world = 2,
                  .phase = "train",
                  .call = 0,
                  .flags = {"--batch_size=4", "--epochs=1"}};
  ASSERT_EQ(stop_in_pause(stop).exit_code, 143);
  const auto before = samples_of_steps(temp_.path(), 2);
  ASSERT_EQ(before.size(), 2U);
  Training resumed = training("stopped", stop);
  resumed.world = 3;
  const TempDir record;
  record.write("go", "");  // No pause.
  resumed.flags = resumed.flags + Words{"--batch_size=1", "--resume=latest",
                                        "--record", record.path().string()};
  const ProcessResult result = run(resumed);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.err + result.out, "saved with 2 processes");
  std::multiset<int64_t> seen;
  for (const auto& step : before) seen.insert(step.begin(), step.end());
  const auto after = samples_of_steps(record.path(), 3);
  EXPECT_EQ(after.size(), 3U);
  for (const auto& step : after) seen.insert(step.begin(), step.end());
  std::multiset<int64_t> all;
  for (int64_t i = 0; i < 24; ++i) all.insert(i);
  EXPECT_EQ(seen, all);
}

TEST_F(TrainResume, AKilledRankTakesTheOthersAlong) {
  const Stop stop{.world = 3, .phase = "train", .call = 2};
  Training killed = training("stopped", stop);
  killed.flags = killed.flags + pausing(stop) +
                 Words{"--pause_signals=1000", "--recover=restart"};
  Process process(command_of(killed), process_options(killed));
  ASSERT_TRUE(wait_until_paused(3)) << process.err();
  const double begin = now_seconds();
  kill(rank_pid(temp_.path(), 1), SIGKILL);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_LT(now_seconds() - begin, 8);
  EXPECT_TRUE(wait_until_gone(process.marker(), 5).empty());
  // Nobody is left to agree with: nothing was saved.
  EXPECT_FALSE(fs::exists(temp_.path() / "stopped/checkpoint_step_3.pt"));
}

TEST_F(TrainResume, ARestartGoesOnByItself) {
  const Stop stop{
      .world = 2, .phase = "train", .call = 5, .flags = {"--save_every=2"}};
  run_well(training("whole", stop));
  Training killed = training("stopped", stop);
  killed.flags = killed.flags + pausing(stop) +
                 Words{"--max-restarts=1", "--recover=restart"};
  Process process(command_of(killed), process_options(killed));
  ASSERT_TRUE(wait_until_paused(2)) << process.err();
  // The new attempt starts in the middle and does not come to its own pause.
  kill(rank_pid(temp_.path(), 1), SIGKILL);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  expect_in(result.out, "resuming from");
  expect_as_uninterrupted();
}

TEST_F(TrainResume, ARestartDoesNotTakeOverAnotherJobsRun) {
  const Stop stop{.world = 2};
  run_well(training("whole", stop));
  const auto before = metric_lines(temp_.path() / "whole");
  Training again = training("whole", stop);
  again.flags = again.flags + Words{"--max-restarts=1", "--epochs=4"};
  const ProcessResult result = run(again);
  EXPECT_EQ(result.exit_code, 2) << result.out;
  expect_in(result.err, "already holds a run");
  EXPECT_EQ(metric_lines(temp_.path() / "whole"), before);
}

// Every step is skipped; the limit counts those before the stop too.
TEST_F(TrainResume, SkippedStepsInARowGoOn) {
  const Stop stop{.phase = "train",
                  .call = 1,
                  .flags = {"--batch_size=24", "--nan_sample=3", "--epochs=9",
                            "--log_every=1", "--val_every_epochs=0",
                            "--max_skipped_steps=4"}};
  ASSERT_EQ(stop_in_pause(stop).exit_code, 143);
  Training resumed = training("stopped", stop);
  resumed.flags = resumed.flags + Words{"--resume=latest"};
  const ProcessResult result = run(resumed);
  EXPECT_EQ(result.exit_code, 1) << result.out;
  expect_in(result.err, "for 4 steps in a row, up to step 4");
}

// A last word of a run that is over: nothing to do and nothing changed.
TEST_F(TrainResume, AFinishedRunStaysAsItIs) {
  const Stop stop{};
  run_well(training("whole", stop));
  fs::copy(temp_.path() / "whole", temp_.path() / "stopped",
           fs::copy_options::recursive);
  resume(stop);
  expect_as_uninterrupted();
}

TEST_F(TrainResume, SettingsNeedNotBeTypedAgain) {
  const Words flags = {"--n_steps=12",    "--global_batch_size=6",
                       "--use_amp",       "--lr_scaling=linear",
                       "--ema_decay=0.9", "--save_every=5",
                       "--keep_last=0"};
  const Training whole{.recipe = "probe",
                       .world = 2,
                       .folder = temp_.path() / "whole",
                       .flags = flags};
  run_well(whole);
  Training part = whole;
  part.folder = temp_.path() / "part";
  run_well(part);
  for (const char* name :
       {"checkpoint_step_10.pt", "checkpoint_step_12.pt", "best_model.pt"}) {
    fs::remove(part.folder / name);
  }
  part.flags = {"--resume=latest"};
  run_well(part);
  EXPECT_EQ(metric_lines(part.folder), metric_lines(whole.folder));
  expect_equal(learned(last_checkpoint(part.folder)),
               learned(last_checkpoint(whole.folder)));
  // From the checkpoint alone, into a folder that knows nothing of it.
  Training elsewhere = part;
  elsewhere.folder = temp_.path() / "elsewhere";
  elsewhere.flags = {"--resume=" +
                     (part.folder / "checkpoint_step_5.pt").string()};
  run_well(elsewhere);
  expect_equal(learned(last_checkpoint(elsewhere.folder)),
               learned(last_checkpoint(whole.folder)));
  // What belonged to one start is not kept.
  const std::string config = base::read_file(part.folder / "config.yaml");
  for (const char* word : {"resume", "overwrite", "world_size", "local_rank"}) {
    expect_not_in(config, word);
  }
}

}  // namespace
}  // namespace lockstep::testing
