// Trainings on disks that are full, broken or read-only: they go on, say what
// was lost, and lose nothing that was saved before.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "lockstep/checkpoint.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Eight steps with a checkpoint every second one.
class DiskFault : public ::testing::Test {
 protected:
  Training training(int world = 1, const Words& flags = {}) const {
    return {.recipe = "probe",
            .world = world,
            .folder = folder(),
            .flags = Words{"--n_steps=8", "--save_every=2",
                           "--global_batch_size=6", "--val_every_epochs=0",
                           "--keep_last=0", "--log_every=1"} +
                     flags};
  }

  // As disk_fault_shim.cpp reads them.
  void set_faults(const std::string& lines) const {
    temp_.write("faults.new", lines);
    fs::rename(temp_.path() / "faults.new", temp_.path() / "faults");
  }

  ProcessOptions options(const Training& training) const {
    ProcessOptions options = process_options(training);
    options.environment["LD_PRELOAD"] = DISK_FAULT_SHIM;
    options.environment["DISK_FAULTS"] = (temp_.path() / "faults").string();
    return options;
  }

  ProcessResult run_with_faults(const Training& training) const {
    return run(command_of(training), options(training));
  }

  // Sends SIGTERM to a training in its third step.
  ProcessResult stop_by_signal() const {
    const Training paused = training(1, {"--pause_in=train", "--pause_call=3",
                                         "--record", temp_.path().string()});
    Process process(command_of(paused), options(paused));
    EXPECT_TRUE(
        wait_for([&] { return fs::exists(temp_.path() / "paused_0"); }, 120));
    process.send(SIGTERM);
    ProcessResult result = process.wait();
    EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
    return result;
  }

  // Whole ones; fails the test when another file of such a name is there.
  std::vector<int64_t> saved_steps() const {
    std::vector<int64_t> steps;
    for (const std::string& name : files_below(folder())) {
      EXPECT_FALSE(contains(name, ".partial.")) << name;
      if (!name.ends_with(".pt") || name == "best_model.pt") continue;
      steps.push_back(
          load_checkpoint(folder() / name).at("global_step").as_int());
    }
    return steps;
  }

  // What is said of a checkpoint that is not written.
  std::string complaint(int step, const std::string& reason) const {
    const std::string path =
        (folder() / ("checkpoint_step_" + std::to_string(step) + ".pt"))
            .string();
    return "error: " + path + " was not written: cannot write '" + path +
           "': " + reason;
  }

  fs::path folder() const { return temp_.path() / "run"; }

  TempDir temp_;
};

using Steps = std::vector<int64_t>;

// Else a run that is killed and goes on from the checkpoint lacks records.
TEST_F(DiskFault, ACheckpointWaitsForTheRecordsBeforeIt) {
  set_faults("write HOLD 1 */metrics.jsonl\n");  // The first line is written.
  const Training paused = training(1, {"--pause_in=train", "--pause_call=3",
                                       "--record", temp_.path().string()});
  Process process(command_of(paused), options(paused));
  const fs::path pause = temp_.path() / "paused_0";
  ASSERT_TRUE(wait_for([&] { return fs::exists(pause); }, 120));
  // Its save was asked for in step 2, just before, and waits for 10 s at most.
  const fs::path checkpoint = folder() / "checkpoint_step_2.pt";
  usleep(500'000);
  const bool is_written = fs::exists(checkpoint);
  const auto waited =
      fs::file_time_type::clock::now() - fs::last_write_time(pause);
  EXPECT_TRUE(!is_written || waited > std::chrono::seconds(8));
  set_faults("");
  EXPECT_TRUE(wait_for([&] { return fs::exists(checkpoint); }, 60));
  EXPECT_GE(metric(folder(), "train/loss").size(), 2U);
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 128 + SIGTERM);
}

struct Fault {
  std::string line;
  std::string reason;
};

TEST_F(DiskFault, OfOneSaveIsSaidOnceAndTheNextSaveSucceeds) {
  const std::string file = " */checkpoint_step_4.pt*\n";
  for (const Fault& fault : std::vector<Fault>{
           {"write ENOSPC 0" + file, "No space left on device (errno 28)"},
           {"write ENOSPC 2000" + file, "No space left on device (errno 28)"},
           {"write EIO 2000" + file, "Input/output error (errno 5)"},
           {"fsync EIO 0" + file, "Input/output error (errno 5)"},
           {"rename EIO 0" + file, "Input/output error (errno 5)"},
           {"open EROFS 0" + file, "Read-only file system (errno 30)"}}) {
    SCOPED_TRACE(fault.line);
    fs::remove_all(folder());
    set_faults(fault.line);
    const ProcessResult result = run_with_faults(training());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(count_of(result.err, complaint(4, fault.reason)), 1U)
        << result.err;
    EXPECT_EQ(count_of(result.err, "error:"), 1U) << result.err;
    EXPECT_EQ(saved_steps(), (Steps{2, 6, 8}));
    EXPECT_EQ(metric(folder(), "train/loss").size(), 8U);
  }
}

TEST_F(DiskFault, OfEverySaveIsSaidEachTimeAndTheOldCheckpointStays) {
  Training first = training(2);
  first.flags.push_back("--n_steps=2");
  run_well(first);
  ASSERT_EQ(saved_steps(), Steps{2});
  const std::string before = base::read_file(folder() / "checkpoint_step_2.pt");
  set_faults("write ENOSPC 3000 *.pt.partial.*\n");
  const ProcessResult result =
      run_with_faults(training(2, {"--resume=latest"}));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  for (const int step : {4, 6, 8}) {
    EXPECT_EQ(count_of(result.err, complaint(step, "No space left")), 1U)
        << result.err;
  }
  expect_in(result.err, "its last checkpoint could not be written");
  EXPECT_EQ(saved_steps(), Steps{2});
  EXPECT_EQ(base::read_file(folder() / "checkpoint_step_2.pt"), before);
  EXPECT_EQ(metric(folder(), "train/loss").size(), 8U);
  // With space again the run is done anew from there.
  run_well(training(2, {"--resume=latest"}));
  EXPECT_EQ(saved_steps(), (Steps{2, 4, 6, 8}));
}

TEST_F(DiskFault, OfAllSavesIsSaidLoudlyWithoutTalkOfOlderCheckpoints) {
  set_faults("write ENOSPC 0 *.pt.partial.*\n");
  const ProcessResult result = run_with_faults(training(2));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  expect_in(result.err, "THE LAST 3 SAVES HAVE FAILED");
  expect_in(result.err, "THE LAST 4 SAVES HAVE FAILED");
  expect_in(result.err, "the run has no checkpoint on disk");
  expect_not_in(result.err, "older");
  EXPECT_EQ(metric(folder(), "train/loss").size(), 8U);
}

TEST_F(DiskFault, OfThreeSavesEndsATrainingThatRequiresThem) {
  set_faults("write ENOSPC 0 *.pt.partial.*\n");
  const ProcessResult result =
      run_with_faults(training(2, {"--save_required"}));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  expect_in(result.err, "--save_required: the last 3 saves have failed");
  // That of step 6 was the third.
  EXPECT_EQ(metric(folder(), "train/loss").size(), 6U);
}

TEST_F(DiskFault, OfOneSaveDoesNotEndATrainingThatRequiresThem) {
  set_faults("write ENOSPC 0 */checkpoint_step_[24].pt.partial.*\n");
  const ProcessResult result =
      run_with_faults(training(2, {"--save_required"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(saved_steps(), (Steps{6, 8}));
}

TEST_F(DiskFault, ThatGoesAwayDuringTheRunIsForgiven) {
  set_faults(
      "write ENOSPC 0 *.pt.partial.*\n"
      "open EROFS 0 *.pt.partial.*\n");
  const Training paused =
      training(2, {"--pause_in=train", "--pause_call=5", "--pause_signals=1000",
                   "--record", temp_.path().string()});
  Process process(command_of(paused), options(paused));
  const auto is_told = [&] {
    return contains(process.err(), complaint(4, "Read-only file system"));
  };
  ASSERT_TRUE(wait_for(is_told, 120)) << process.err();
  fs::remove(temp_.path() / "faults");
  temp_.write("go", "");
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count_of(result.err, "was not written"), 2U) << result.err;
  EXPECT_EQ(saved_steps(), (Steps{6, 8}));
}

TEST_F(DiskFault, WhenStoppedBySignalIsSaidAndTheSignalIsTheExitCode) {
  set_faults("write ENOSPC 0 */checkpoint_step_[!2].pt.partial.*\n");
  const ProcessResult result = stop_by_signal();
  expect_in(result.out, "the last checkpoint was not written, older ones are");
  EXPECT_EQ(saved_steps(), Steps{2});
}

TEST_F(DiskFault, WhenStoppedWithoutAnyCheckpointSaysThatNothingIsLeft) {
  set_faults("write ENOSPC 0 *.pt.partial.*\n");
  const ProcessResult result = stop_by_signal();
  expect_in(result.err, "the run cannot be resumed");
  expect_not_in(result.out, "--resume latest");
}

TEST_F(DiskFault, OfTheBestModelLeavesTheOneBefore) {
  // Best at steps 2 and 4; the second cannot be written.
  const Words flags = {"--val_every=2",
                       "--val_samples=4",
                       "--validation_losses",
                       "3",
                       "2",
                       "2.5",
                       "9"};
  Training paused =
      training(1, flags + Words{"--pause_in=train", "--pause_call=3",
                                "--record", temp_.path().string()});
  Process process(command_of(paused), options(paused));
  ASSERT_TRUE(wait_for(
      [&] {
        return fs::exists(temp_.path() / "paused_0") &&
               fs::exists(folder() / "best_model.pt");
      },
      120));
  set_faults("rename EIO 0 */best_model.pt\n");
  temp_.write("go", "");
  const ProcessResult result = process.wait();
  // Step 6 with 2.5 is better than step 2 with 3, which is on the disk.
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(count_of(result.err, "best_model.pt was not written"), 2U)
      << result.err;
  expect_in(result.err, "its best model could not be written");
  EXPECT_EQ(
      load_checkpoint(folder() / "best_model.pt").at("global_step").as_int(),
      2);
  EXPECT_EQ(saved_steps(), (Steps{2, 4, 6, 8}));
}

TEST_F(DiskFault, OfRecordsIsSaidOncePerKindAndTrainingGoesOn) {
  set_faults(
      "write ENOSPC 600 */train.log\n"
      "write ENOSPC 800 */metrics.jsonl\n"
      "write ENOSPC 400 */metrics.csv\n"
      "write EIO 2000 */events.out.tfevents.*\n"
      "write ENOSPC 6000 *.wandb\n"
      "fsync EIO 0 */loss.svg.partial.*\n"
      "open EROFS 0 */samples/*\n");
  const Training run = training(2, {"--use_wandb", "--sample_every=4"});
  ProcessOptions faulty = options(run);
  faulty.environment["WANDB_DIR"] = temp_.path().string();
  const ProcessResult result = testing::run(command_of(run), faulty);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count_of(result.err, "the log file"), 1U) << result.err;
  for (const char* kind : {"metrics.jsonl", "metrics.csv", "TensorBoard",
                           "wandb", "loss.png", "samples"}) {
    const std::string said = std::string("error: ") + kind + ": ";
    EXPECT_GE(count_of(result.err, said), 1U) << kind << result.err;
    EXPECT_LE(count_of(result.err, said), 2U) << kind << result.err;
  }
  EXPECT_EQ(count_of(result.err, "training goes on"), 6U + 1U) << result.err;
  EXPECT_EQ(saved_steps(), (Steps{2, 4, 6, 8}));
  EXPECT_EQ(fs::file_size(folder() / "train.log"), 600U);
  // Whole lines are left, no half ones.
  const std::string metrics = base::read_file(folder() / "metrics.jsonl");
  EXPECT_LE(metrics.size(), 800U);
  EXPECT_TRUE(metrics.ends_with("}\n")) << metrics;
}

// A disk that is slow: what is said of the samples comes before the last line,
// and the checkpoint waits for them only so long.
TEST_F(DiskFault, ThatHoldsUpSamplesHoldsUpTheLastLine) {
  set_faults("rename HOLD 0 */samples/*\n");
  const Training slow = training(1, {"--sample_every=8"});
  Process process(command_of(slow), options(slow));
  ASSERT_TRUE(wait_for(
      [&] {
        return contains(process.out(), "time per step") &&
               fs::exists(folder() / "checkpoint_step_8.pt");
      },
      120))
      << process.err();
  EXPECT_FALSE(wait_for([&] { return contains(process.out(), "done;"); }, 1));
  fs::remove(temp_.path() / "faults");
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const size_t samples = result.out.find("samples: ");
  ASSERT_NE(samples, std::string::npos) << result.out;
  EXPECT_LT(samples, result.out.find("done;")) << result.out;
  EXPECT_EQ(saved_steps(), (Steps{2, 4, 6, 8}));
}

TEST_F(DiskFault, OfRecordsThatEndsLosesOnlyWhatCameMeanwhile) {
  set_faults("write ENOSPC 0 */metrics.jsonl\n");
  const Training paused = training(1, {"--pause_in=train", "--pause_call=4",
                                       "--record", temp_.path().string()});
  Process process(command_of(paused), options(paused));
  ASSERT_TRUE(
      wait_for([&] { return fs::exists(temp_.path() / "paused_0"); }, 120));
  ASSERT_TRUE(wait_for(
      [&] { return contains(process.err(), "metrics.jsonl: cannot"); }, 120));
  fs::remove(temp_.path() / "faults");
  temp_.write("go", "");
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.err, "records could not be written");
  // Those of the steps behind the pause, at least.
  const size_t num_kept = metric(folder(), "train/loss").size();
  EXPECT_GE(num_kept, 4U);
  EXPECT_LT(num_kept, 8U);
}

}  // namespace
}  // namespace lockstep::testing
