// Stopping a training that is in the middle of a step: it is saved, or the loss
// is named.
#include <gtest/gtest.h>

#include <csignal>

#include "faults/launcher.h"
#include "lockstep/base/strings.h"
#include "support/terminal.h"

namespace lockstep::testing {
namespace {

constexpr double kShutdownSeconds = 0.3;
constexpr int kUnsavedCode = 8;

class Stop : public ::testing::Test {
 protected:
  Words training(const std::string& mode, const Words& options = {}) const {
    Words words = {"--nproc=2",
                   "--shutdown-timeout=" + std::to_string(kShutdownSeconds)};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string& word : {std::string(LOCKSTEP_TRAINING_WORKER), mode,
                                    folder_.path().string()}) {
      words.push_back(word);
    }
    return job(words);
  }

  // The launcher has announced how long it will wait.
  static void expect_words(const Process& launcher, const std::string& words) {
    EXPECT_TRUE(wait_for([&] { return contains(launcher.err(), words); }, 10))
        << launcher.err();
  }

  void end_step() const { folder_.write("go", ""); }

  TempDir folder_;
};

TEST_F(Stop, InterruptWaitsForTheStepAndItsCheckpoint) {
  Process launcher(training("normal"));
  wait_until_ready(launcher);
  launcher.send(SIGINT);
  expect_words(launcher,
               ": waiting for its end and a checkpoint, how long is not known "
               "yet; Ctrl-C again ends at once and loses what came after the "
               "checkpoint of step 10\n");
  EXPECT_TRUE(contains(launcher.err(), "step 13 is under way for"));
  // Much longer than the time to shut down.
  const double begin = now_seconds();
  wait_for([&] { return now_seconds() > begin + 5 * kShutdownSeconds; }, 60);
  EXPECT_EQ(find_marked(launcher.marker()).size(), 5U)
      << "front, guard, keeper and both workers are alive";
  end_step();
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_FALSE(contains(result.err, "lost")) << result.err;
}

TEST_F(Stop, TheSecondInterruptEndsAtOnceAndTheLossIsNamed) {
  Process launcher(training("normal", {"--shutdown-timeout=60"}));
  wait_until_ready(launcher);
  launcher.send(SIGINT);
  expect_words(launcher, "step 13 is under way");
  launcher.send(SIGINT);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, kUnsavedCode) << result.err;
  EXPECT_LT(result.seconds, 15);
  EXPECT_TRUE(contains(
      result.err,
      "lockstep: ended before the training was saved: steps 11 to 13 are lost, "
      "step 13 was under way; --resume latest goes on from the checkpoint of "
      "step 10\n"))
      << result.err;
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 0).empty());
}

TEST_F(Stop, TermKeepsTheShutdownTimeoutAndTheLossIsNamed) {
  Process launcher(training("normal"));
  wait_until_ready(launcher);
  launcher.send(SIGTERM);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, kUnsavedCode) << result.err;
  EXPECT_TRUE(contains(result.err, "steps 11 to 13 are lost")) << result.err;
  EXPECT_FALSE(contains(result.err, "waiting for")) << result.err;
}

TEST_F(Stop, TermSavesWhenTheStepEndsInTime) {
  Process launcher(training("normal", {"--shutdown-timeout=60"}));
  wait_until_ready(launcher);
  launcher.send(SIGTERM);
  end_step();
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 143) << result.err;
  EXPECT_FALSE(contains(result.err, "lost")) << result.err;
}

TEST_F(Stop, TermAfterInterruptEndsThePatience) {
  Process launcher(training("normal"));
  wait_until_ready(launcher);
  launcher.send(SIGINT);
  expect_words(launcher, "step 13 is under way");
  launcher.send(SIGTERM);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, kUnsavedCode) << result.err;
}

TEST_F(Stop, ASavedTrainingThatDoesNotEndIsKilledWithoutALoss) {
  Process launcher(training("hang"));
  wait_until_ready(launcher);
  launcher.send(SIGINT);
  expect_words(launcher, "step 13 is under way");
  end_step();
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_FALSE(contains(result.err, "lost")) << result.err;
}

TEST_F(Stop, ACheckpointThatCouldNotBeWrittenIsALoss) {
  Process launcher(training("full"));
  wait_until_ready(launcher);
  launcher.send(SIGINT);
  end_step();
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, kUnsavedCode) << result.err;
  EXPECT_TRUE(contains(result.err, "steps 11 to 13 are lost;")) << result.err;
}

// Nobody is left to finish the step with.
TEST_F(Stop, NoRankIsWaitedForWhenAnotherOneFailed) {
  Process launcher(training("fail"));
  wait_until_ready(launcher);
  launcher.send(SIGINT);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, kUnsavedCode) << result.err;
}

TEST_F(Stop, APersonAtATerminalReadsWhatIsWaitedFor) {
  Terminal terminal(/*columns=*/400);
  Process launcher(training("normal"), {.terminal_fd = terminal.worker_fd()});
  const auto screen = [&] { return base::join(terminal.lines(), "\n"); };
  ASSERT_TRUE(wait_for(
      [&] {
        const std::string text = screen();
        return contains(text, "ready 0") && contains(text, "ready 1");
      },
      10));
  launcher.send(SIGINT);
  EXPECT_TRUE(wait_for(
      [&] {
        return contains(screen(),
                        "lockstep: SIGINT received, ending 2 processes\n"
                        "lockstep: step 13 is under way for ");
      },
      10))
      << screen();
  end_step();
  EXPECT_EQ(launcher.wait().exit_code, 130);
}

}  // namespace
}  // namespace lockstep::testing
