// `lockstep verify-resume`: a recipe that resumes exactly, and one that does
// not.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "support/messages.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

using Words = std::vector<std::string>;

class VerifyResume : public ::testing::Test {
 protected:
  static Words command(const Words& words) {
    Words command = {LOCKSTEP_PROGRAM, "verify-resume"};
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
  ProcessOptions options() const {
    return {.environment = {{"TMPDIR", temp_.path().string()},
                            {"LOCKSTEP_WORKER", PROBE_WORKER},
                            {"OMP_NUM_THREADS", "1"},
                            {"CUDA_VISIBLE_DEVICES", ""}},
            .folder = folder_.path().string()};
  }
  ProcessResult verify(const Words& words) const {
    return run(command(words), options());
  }

  size_t num_left() const {
    size_t count = 0;
    for (const TempDir* folder : {&temp_, &folder_}) {
      count += static_cast<size_t>(
          std::distance(std::filesystem::directory_iterator(folder->path()),
                        std::filesystem::directory_iterator()));
    }
    return count;
  }

  TempDir temp_;
  TempDir folder_;
};

TEST_F(VerifyResume, EqualBitsAreSaidAndNothingIsLeft) {
  const auto result = verify({"--steps", "6", "probe", "--nproc", "2",
                              "--batch_size=2", "--dropout=0.3"});
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  expect_in(result.out, "training 6 steps without a stop\n");
  expect_in(result.out, "training 3 steps, then ending\n");
  expect_in(result.out, "tensors, states and metrics, bit for bit");
  EXPECT_EQ(num_left(), 0U);
}

TEST_F(VerifyResume, StateThatNoCheckpointKeepsIsFound) {
  const auto result = verify({"probe", "--batch_size=2", "--forgetful"});
  EXPECT_EQ(result.exit_code, 1) << result.err << result.out;
  expect_in(result.out, "DIFFERENT: ");
  expect_in(result.out, "model_state_dict.");
  expect_in(result.out, "Both runs are in ");
  EXPECT_EQ(num_left(), 1U);
}

TEST_F(VerifyResume, WrongWordsAndTrainingsThatFailAreToldFromDifferences) {
  const auto own = verify({"probe", "--n_steps=3"});
  EXPECT_EQ(own.exit_code, 2);
  expect_in(own.err, "lockstep verify-resume sets --n_steps itself");
  const auto few = verify({"--steps=1", "probe"});
  EXPECT_EQ(few.exit_code, 2);
  expect_in(few.err, "--steps '1': it must be 2 or above");
  const auto none = verify({});
  EXPECT_EQ(none.exit_code, 2);
  expect_in(none.err, "usage: lockstep verify-resume");
  const auto failing = verify({"probe", "--no_such_flag"});
  EXPECT_EQ(failing.exit_code, 1);
  expect_in(failing.err, "the training itself failed");
  EXPECT_EQ(num_left(), 0U);
}

TEST_F(VerifyResume, CtrlCLeavesNothingBehind) {
  Process process(command({"probe", "--batch_size=2"}), options());
  ASSERT_TRUE(process.wait_for_output("without a stop"));
  process.send(SIGINT);
  EXPECT_EQ(process.wait().exit_code, -SIGINT);
  EXPECT_TRUE(wait_until_gone(process.marker(), 60).empty());
  EXPECT_EQ(num_left(), 0U);
}

}  // namespace
}  // namespace lockstep::testing
