#include "lockstep/launch/stop_patience.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/messages.h"

namespace lockstep {
namespace {

using testing::contains;

constexpr int64_t kSecond = 1'000'000'000;

// Twelve steps are done, the checkpoint of step 10 is on disk.
base::TrainingStatus in(base::Activity activity) {
  return {.activity = activity,
          .activity_seconds = 4,
          .typical_seconds = 40,
          .saving_seconds = 3,
          .num_steps = 12,
          .saved_step = 10};
}

TEST(StopPatience, ExpectsTheRestOfTheStepAndACheckpoint) {
  EXPECT_EQ(launch::expected_seconds(in(base::Activity::kStep)), 39);
  EXPECT_EQ(launch::expected_seconds(in(base::Activity::kSaving)), 36);
  base::TrainingStatus overdue = in(base::Activity::kStep);
  overdue.activity_seconds = 100;
  EXPECT_EQ(launch::expected_seconds(overdue), 3);
  base::TrainingStatus first = in(base::Activity::kStep);
  first.typical_seconds = 0;
  EXPECT_FALSE(launch::expected_seconds(first));
}

TEST(StopPatience, SaysWhatItWaitsForAndHowLong) {
  EXPECT_EQ(launch::stop_wait_text(in(base::Activity::kStep)),
            "step 13 is under way for 4.0 s (one takes 40.0 s): waiting for "
            "its end and a checkpoint, about 39.0 s; Ctrl-C again ends at once "
            "and loses what came after the checkpoint of step 10");
  EXPECT_TRUE(contains(launch::stop_wait_text(in(base::Activity::kValidation)),
                       "a validation batch is under way for 4.0 s"));
  EXPECT_TRUE(contains(launch::stop_wait_text(in(base::Activity::kSaving)),
                       "a checkpoint is under way for 4.0 s (one takes 40.0 "
                       "s): waiting for it, about 36.0 s"));
  base::TrainingStatus first = in(base::Activity::kStep);
  first.typical_seconds = 0;
  first.saved_step = -1;
  const std::string text = launch::stop_wait_text(first);
  EXPECT_TRUE(contains(text, "how long is not known yet")) << text;
  EXPECT_TRUE(contains(text, "there is no checkpoint yet")) << text;
}

TEST(StopPatience, NamesTheStepsThatAreLost) {
  EXPECT_EQ(launch::loss_text(in(base::Activity::kStep)),
            "ended before the training was saved: steps 11 to 13 are lost, "
            "step 13 was under way; --resume latest goes on from the "
            "checkpoint of step 10");
  EXPECT_TRUE(contains(*launch::loss_text(in(base::Activity::kSaving)),
                       "steps 11 to 12 are lost; --resume"));
  base::TrainingStatus saved = in(base::Activity::kStep);
  saved.saved_step = 12;
  EXPECT_TRUE(contains(*launch::loss_text(saved), "step 13 is lost; --resume"));
  base::TrainingStatus without = in(base::Activity::kValidation);
  without.saved_step = -1;
  EXPECT_TRUE(contains(*launch::loss_text(without),
                       "steps 1 to 12 are lost; there is no checkpoint"));
}

TEST(StopPatience, NothingIsLostOnceItIsSaved) {
  base::TrainingStatus saved = in(base::Activity::kFinishing);
  saved.saved_step = 12;
  EXPECT_FALSE(launch::loss_text(saved));
  saved.activity = base::Activity::kValidation;
  EXPECT_FALSE(launch::loss_text(saved));
}

TEST(StopPatience, TheLastCheckpointThatFailedIsALoss) {
  EXPECT_TRUE(launch::loss_text(in(base::Activity::kFinishing)));
}

// Rank 0 alone knows what is on disk; another one may still compute.
TEST(StopPatience, AllRanksAreOneTraining) {
  EXPECT_FALSE(launch::combine({}));
  base::TrainingStatus main = in(base::Activity::kFinishing);
  main.saved_step = 12;
  base::TrainingStatus other = in(base::Activity::kSaving);
  other.saved_step = -1;
  const auto training = launch::combine(std::vector{main, other});
  EXPECT_EQ(training->activity, base::Activity::kSaving);
  EXPECT_EQ(training->saved_step, 12);
  EXPECT_TRUE(launch::will_save(*training));
  EXPECT_FALSE(launch::will_save(main));
}

TEST(StopPatience, SpeaksAtOnceOfALongWaitAndRarelyLater) {
  launch::StopPatience patience(kSecond);
  const base::TrainingStatus training = in(base::Activity::kStep);
  EXPECT_FALSE(patience.take_message(training, kSecond).empty());
  EXPECT_TRUE(patience.take_message(training, 2 * kSecond).empty());
  EXPECT_FALSE(patience.take_message(training, patience.next_ns()).empty());
  EXPECT_EQ(patience.next_ns(), (1 + 30 + 60) * kSecond);
}

TEST(StopPatience, SaysNothingOfAShortWait) {
  launch::StopPatience patience(kSecond);
  base::TrainingStatus training = in(base::Activity::kStep);
  training.typical_seconds = 0.1;
  training.saving_seconds = 0.2;
  EXPECT_TRUE(patience.take_message(training, kSecond).empty());
  EXPECT_EQ(patience.next_ns(), 6 * kSecond);
  EXPECT_FALSE(patience.take_message(training, 6 * kSecond).empty())
      << "a longer wait has a message";
}

}  // namespace
}  // namespace lockstep
