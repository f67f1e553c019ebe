#include "lockstep/track/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

track::ProgressState some_state() {
  return {.step = 120,
          .total_steps = 1000,
          .epoch = 2,
          .total_epochs = 10,
          .loss = 1.2345,
          .lr = 1e-4,
          .samples_per_second = 480,
          .seconds_elapsed = 31.5};
}

int columns_of(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

TEST(Progress, TheBarSaysAllInOneLine) {
  EXPECT_EQ(track::bar_text(some_state(), {.columns = 103}),
            "train  12%|#---------| 120/1000 [00:31<03:51, 3.8 it/s] epoch "
            "2/10 loss 1.2345 lr 0.0001 480 samples/s");
}

TEST(Progress, TheBarFillsTheLineUpToFortyCells) {
  const std::string text = track::bar_text(some_state(), {.columns = 112});
  EXPECT_EQ(columns_of(text), 111);
  const std::string wide = track::bar_text(some_state(), {.columns = 500});
  EXPECT_NE(wide.find("|" + std::string(4, '#') + std::string(36, '-') + "|"),
            std::string::npos);
}

TEST(Progress, ANarrowBarStillSaysEtaLossRateAndSpeed) {
  track::ProgressState state = some_state();
  state.extra = {{"grad_norm", 0.5}};
  EXPECT_EQ(track::bar_text(state, {.columns = 80}),
            "train  12%|#--------------| 120/1000 <03:51 loss 1.2345 lr 0.0001 "
            "480 samples/s");
  EXPECT_NE(
      track::bar_text(state, {.columns = 96}).find("[00:31<03:51] epoch 2/10"),
      std::string::npos);
}

TEST(Progress, TheBarIsCutToTheWidth) {
  const std::string text = track::bar_text(some_state(), {.columns = 60});
  EXPECT_EQ(text,
            "train  12%|#---------| 120/1000 <03:51 loss 1.2345 lr 0.000");
  EXPECT_EQ(track::bar_text(some_state(), {.columns = 1}), "t");
}

TEST(Progress, BlocksShowEighthsOfACell) {
  track::ProgressState state{.step = 13, .total_steps = 80};
  // 13 of 80 eighths: one whole cell and five eighths.
  const std::string text =
      track::bar_text(state, {.columns = 30, .is_utf8 = true});
  EXPECT_NE(text.find("|\u2588\u258b        |"), std::string::npos) << text;
  // Cutting never leaves half of a character.
  EXPECT_EQ(track::bar_text(state, {.columns = 13, .is_utf8 = true}),
            "train  16%|\u2588");
  state.step = 80;
  EXPECT_EQ(track::bar_text(state, {.columns = 22, .is_utf8 = true}).size(),
            std::string("train 100%|").size() + 10 * 3);
}

TEST(Progress, StepsBeyondTheTotalLeaveTheBarFull) {
  const std::string text = track::bar_text(
      {.step = 1200, .total_steps = 1000, .seconds_elapsed = 12},
      {.columns = 80});
  EXPECT_TRUE(text.starts_with("train 100%|####")) << text;
  EXPECT_NE(text.find("1200/1000 [00:12<00:00, 100 it/s]"), std::string::npos);
}

TEST(Progress, SlowStepsAreCountedInSeconds) {
  const std::string text = track::bar_text(
      {.step = 4, .total_steps = 8, .seconds_elapsed = 10}, {.columns = 80});
  EXPECT_NE(text.find("[00:10<00:10, 2.5 s/it]"), std::string::npos) << text;
}

TEST(Progress, NothingIsClaimedBeforeTheFirstStep) {
  const std::string text =
      track::bar_text({.step = 0, .total_steps = 8}, {.columns = 80});
  EXPECT_NE(text.find("0/8 [00:00<?, ? it/s]"), std::string::npos) << text;
  EXPECT_EQ(track::line_text({.step = 0, .total_steps = 8}), "step 0/8 eta ?");
}

TEST(Progress, AnUnknownTotalHasNoBarAndNoEta) {
  const track::ProgressState state{
      .label = "sample", .step = 6, .seconds_elapsed = 2};
  EXPECT_EQ(track::bar_text(state, {}), "sample 6 [00:02, 3.0 it/s]");
  EXPECT_EQ(track::line_text(state), "sample step 6");
}

TEST(Progress, AResumedRunCountsItsOwnStepsForTheSpeed) {
  track::ProgressState state = some_state();
  state.first_step = 110;
  state.seconds_elapsed = 10;
  EXPECT_NE(
      track::bar_text(state, {.columns = 120}).find("[00:10<14:40, 1.0 it/s]"),
      std::string::npos);
}

TEST(Progress, LinesHoldTheSameValues) {
  track::ProgressState state = some_state();
  state.extra = {{"grad_norm", 0.5}, {"skipped", 0}};
  EXPECT_EQ(track::line_text(state),
            "step 120/1000 epoch 2/10 loss 1.2345 lr 0.0001 480 samples/s "
            "grad_norm 0.5000 skipped 0.0000 eta 03:51");
}

TEST(Progress, OddLossesStayReadable) {
  const auto loss = [](double value) {
    return track::line_text({.step = 1, .loss = value});
  };
  EXPECT_EQ(loss(0.00001234), "step 1 loss 1.234e-05");
  EXPECT_EQ(loss(-12.5), "step 1 loss -12.5000");
  EXPECT_EQ(loss(1.5e9), "step 1 loss 1.5e+09");
  EXPECT_EQ(loss(std::numeric_limits<double>::quiet_NaN()), "step 1 loss nan");
}

TEST(Progress, ClocksHaveHoursOnlyWhenNeeded) {
  EXPECT_EQ(track::clock_text(0), "00:00");
  EXPECT_EQ(track::clock_text(59.9), "00:59");
  EXPECT_EQ(track::clock_text(3599), "59:59");
  EXPECT_EQ(track::clock_text(3723), "1:02:03");
  EXPECT_EQ(track::clock_text(100 * 3600), "100:00:00");
  EXPECT_EQ(track::clock_text(-1), "?");
  EXPECT_EQ(track::clock_text(std::numeric_limits<double>::infinity()), "?");
}

}  // namespace
}  // namespace lockstep
