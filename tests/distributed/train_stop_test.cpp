// Ctrl-C and TERM in a step or a validation that outlasts --shutdown-timeout.
#include <gtest/gtest.h>

#include <csignal>

#include "distributed/training.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kUnsavedCode = 8;
constexpr double kShutdownSeconds = 1;

class TrainStop : public ::testing::Test {
 protected:
  // The phase goes on only when the file "go" is there.
  Training paused_in(const std::string& phase, int call) const {
    return {
        .recipe = "probe",
        .world = 2,
        .folder = temp_.path() / "run",
        .flags = {"--shutdown-timeout=" + std::to_string(kShutdownSeconds),
                  "--n_steps=10", "--batch_size=3", "--val_every=4",
                  "--save_every=2", "--val_samples=12", "--pause_in", phase,
                  "--pause_call", std::to_string(call), "--pause_signals=1000",
                  "--record", temp_.path().string()}};
  }

  bool is_paused() const {
    return fs::exists(temp_.path() / "paused_0") &&
           fs::exists(temp_.path() / "paused_1");
  }

  // Sends the signal in the pause, and lets go of it after the time to shut
  // down.
  ProcessResult stop(const Training& training, int signal) const {
    Process process(command_of(training), process_options(training));
    EXPECT_TRUE(wait_for([&] { return is_paused(); }, 60))
        << process.out() << process.err();
    process.send(signal);
    const double begin = now_seconds();
    wait_for([&] { return now_seconds() > begin + 3 * kShutdownSeconds; }, 60);
    temp_.write("go", "");
    return process.wait();
  }

  TempDir temp_;
};

TEST_F(TrainStop, CtrlCInALongStepSavesIt) {
  const ProcessResult result = stop(paused_in("train", 4), SIGINT);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  expect_in(result.out, "saving, then ending");
  expect_not_in(result.err, "lost");
  EXPECT_GE(last_checkpoint(temp_.path() / "run")
                .at("lockstep")
                .at("state")
                .at("step")
                .as_int(),
            5);
}

TEST_F(TrainStop, CtrlCInALongValidationSavesIt) {
  const ProcessResult result = stop(paused_in("validate", 0), SIGINT);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  expect_in(result.out, "saving, then ending");
  expect_not_in(result.err, "lost");
}

TEST_F(TrainStop, TermInALongStepKillsItAndNamesTheLoss) {
  const ProcessResult result = stop(paused_in("train", 5), SIGTERM);
  EXPECT_EQ(result.exit_code, kUnsavedCode) << result.err;
  expect_in(result.err,
            "ended before the training was saved: steps 5 to 6 are "
            "lost, step 6 was under way; --resume latest goes on "
            "from the checkpoint of step 4\n");
}

}  // namespace
}  // namespace lockstep::testing
