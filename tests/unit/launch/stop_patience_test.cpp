#include "lockstep/launch/stop_patience.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/messages.h"

namespace lockstep {
namespace {

using testing::contains;

constexpr int64_t kSecond = 1'000'000'000;

// Twelve steps are done, the checkpoint of step 10 is on disk.
TrainingStatus in(Activity activity) {
  return {.activity = activity,
          .activity_seconds = 4,
          .typical_seconds = 40,
          .saving_seconds = 3,
          .num_steps = 12,
          .saved_step = 10};
}

TEST(StopPatience, ExpectsTheRestOfTheStepAndACheckpoint) {
  EXPECT_EQ(expected_seconds(in(Activity::kStep)), 39);
  EXPECT_EQ(expected_seconds(in(Activity::kSaving)), 36);
  TrainingStatus overdue = in(Activity::kStep);
  overdue.activity_seconds = 100;
  EXPECT_EQ(expected_seconds(overdue), 3);
  TrainingStatus first = in(Activity::kStep);
  first.typical_seconds = 0;
  EXPECT_FALSE(expected_seconds(first));
}

TEST(StopPatience, SaysWhatItWaitsForAndHowLong) {
  EXPECT_EQ(stop_wait_text(in(Activity::kStep)),
            "step 13 is under way for 4.0 s (one takes 40.0 s): waiting for "
            "its end and a checkpoint, about 39.0 s; Ctrl-C again ends at once "
            "and loses what came after the checkpoint of step 10");
  EXPECT_TRUE(contains(stop_wait_text(in(Activity::kValidation)),
                       "a validation batch is under way for 4.0 s"));
  EXPECT_TRUE(contains(stop_wait_text(in(Activity::kSaving)),
                       "a checkpoint is under way for 4.0 s (one takes 40.0 "
                       "s): waiting for it, about 36.0 s"));
  TrainingStatus first = in(Activity::kStep);
  first.typical_seconds = 0;
  first.saved_step = -1;
  const std::string text = stop_wait_text(first);
  EXPECT_TRUE(contains(text, "how long is not known yet")) << text;
  EXPECT_TRUE(contains(text, "there is no checkpoint yet")) << text;
}

TEST(StopPatience, NamesTheStepsThatAreLost) {
  EXPECT_EQ(loss_text(in(Activity::kStep)),
            "ended before the training was saved: steps 11 to 13 are lost, "
            "step 13 was under way; --resume latest goes on from the "
            "checkpoint of step 10");
  EXPECT_TRUE(contains(*loss_text(in(Activity::kSaving)),
                       "steps 11 to 12 are lost; --resume"));
  TrainingStatus saved = in(Activity::kStep);
  saved.saved_step = 12;
  EXPECT_TRUE(contains(*loss_text(saved), "step 13 is lost; --resume"));
  TrainingStatus without = in(Activity::kValidation);
  without.saved_step = -1;
  EXPECT_TRUE(contains(*loss_text(without),
                       "steps 1 to 12 are lost; there is no checkpoint"));
}

TEST(StopPatience, NothingIsLostOnceItIsSaved) {
  TrainingStatus saved = in(Activity::kFinishing);
  saved.saved_step = 12;
  EXPECT_FALSE(loss_text(saved));
  saved.activity = Activity::kValidation;
  EXPECT_FALSE(loss_text(saved));
}

TEST(StopPatience, TheLastCheckpointThatFailedIsALoss) {
  EXPECT_TRUE(loss_text(in(Activity::kFinishing)));
}

// Rank 0 alone knows what is on disk; another one may still compute.
TEST(StopPatience, AllRanksAreOneTraining) {
  EXPECT_FALSE(combine({}));
  TrainingStatus main = in(Activity::kFinishing);
  main.saved_step = 12;
  TrainingStatus other = in(Activity::kSaving);
  other.saved_step = -1;
  const auto training = combine(std::vector{main, other});
  EXPECT_EQ(training->activity, Activity::kSaving);
  EXPECT_EQ(training->saved_step, 12);
  EXPECT_TRUE(will_save(*training));
  EXPECT_FALSE(will_save(main));
}

TEST(StopPatience, SpeaksAtOnceOfALongWaitAndRarelyLater) {
  StopPatience patience(kSecond);
  const TrainingStatus training = in(Activity::kStep);
  EXPECT_FALSE(patience.take_message(training, kSecond).empty());
  EXPECT_TRUE(patience.take_message(training, 2 * kSecond).empty());
  EXPECT_FALSE(patience.take_message(training, patience.next_ns()).empty());
  EXPECT_EQ(patience.next_ns(), (1 + 30 + 60) * kSecond);
}

TEST(StopPatience, SaysNothingOfAShortWait) {
  StopPatience patience(kSecond);
  TrainingStatus training = in(Activity::kStep);
  training.typical_seconds = 0.1;
  training.saving_seconds = 0.2;
  EXPECT_TRUE(patience.take_message(training, kSecond).empty());
  EXPECT_EQ(patience.next_ns(), 6 * kSecond);
  EXPECT_FALSE(patience.take_message(training, 6 * kSecond).empty())
      << "it is no short one";
}

}  // namespace
}  // namespace lockstep
