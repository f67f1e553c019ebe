#include "lockstep/track/plot_tracker.h"

#include <gtest/gtest.h>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/formats/png.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

class PlotTrackerTest : public ::testing::Test {
 protected:
  track::PlotConfig config() const {
    return {.folder = folder_.path(),
            .title = "tiny",
            .metrics = folder_.path() / "metrics.jsonl"};
  }
  bool is_drawn() const {
    return std::filesystem::exists(folder_.path() / "loss.svg");
  }
  std::string svg() const {
    return base::read_file(folder_.path() / "loss.svg");
  }

  const TempDir folder_;
};

TEST_F(PlotTrackerTest, BothFilesAreThereAfterTheFirstRecordAndAtTheEnd) {
  track::PlotTracker tracker(config());
  tracker.tick(1000);
  EXPECT_FALSE(is_drawn());
  tracker.record({.step = 1, .metrics = {{"train/loss", 0.25}}});
  tracker.tick(1001);
  EXPECT_NE(svg().find(">train 0.25<"), std::string::npos);
  const formats::PngHeader header =
      formats::read_png_header(base::read_file(folder_.path() / "loss.png"));
  EXPECT_EQ(header.width, 1200);
  EXPECT_EQ(header.height, 800);
  tracker.record({.step = 2, .metrics = {{"train/loss", 0.5}}});
  tracker.finish(0);
  EXPECT_NE(svg().find(">train 0.5<"), std::string::npos);
}

TEST_F(PlotTrackerTest, TheyAreDrawnAtMostEveryThirtySecondsAndOnlyWithNews) {
  track::PlotTracker tracker(config());
  tracker.record({.step = 1, .metrics = {{"train/loss", 1}}});
  tracker.tick(1000);
  tracker.record({.step = 2, .metrics = {{"train/loss", 2}}});
  tracker.tick(1029);
  EXPECT_NE(svg().find(">train 1<"), std::string::npos);
  tracker.tick(100'000);
  EXPECT_NE(svg().find(">train 2<"), std::string::npos);
  std::filesystem::remove(folder_.path() / "loss.svg");
  tracker.record({.step = 3, .metrics = {{"train/epoch", 2}}});
  tracker.tick(200'000);
  EXPECT_FALSE(is_drawn());
  tracker.record({.step = 4, .metrics = {{"train/loss", 4}}});
  tracker.tick(50'000);  // The clock was set back.
  EXPECT_NE(svg().find(">train 4<"), std::string::npos);
}

TEST_F(PlotTrackerTest, GoingOnBeginsWithTheKeptMetrics) {
  folder_.write("metrics.jsonl",
                "{\"step\":5,\"train/loss\":3.5,\"val/loss\":\"nan\"}\n"
                "{\"step\":6,\"val/loss\":0.125}\n");
  track::PlotTracker tracker(config());
  tracker.finish(1);
  EXPECT_NE(svg().find(">train 3.5<"), std::string::npos);
  EXPECT_NE(svg().find(">lowest 0.125 at step 6<"), std::string::npos);
}

TEST_F(PlotTrackerTest, TheMetricThatSelectsAndTermsOfTheLossArePlotted) {
  track::PlotConfig best = config();
  best.best = {.name = "val/iou", .better = plot::Direction::kHigher};
  track::PlotTracker tracker(best);
  tracker.record({.step = 1,
                  .metrics = {{"train/loss", 3},
                              {"train/epoch", 1},
                              {"train/loss_scale", 1024},
                              {"train/edge_loss", 0.5}}});
  tracker.record({.step = 1, .metrics = {{"val/acc", 0.9}, {"val/iou", 0.75}}});
  tracker.finish(0);
  EXPECT_NE(svg().find(">iou<"), std::string::npos);
  EXPECT_NE(svg().find(">best 0.75 at step 1<"), std::string::npos);
  EXPECT_NE(svg().find(">edge_loss 0.5<"), std::string::npos);
  for (const char* other : {"acc<", "epoch", "scale"}) {
    EXPECT_EQ(svg().find(other), std::string::npos) << other;
  }
}

TEST_F(PlotTrackerTest, LettersThatNoFontHasAreWarnedAboutOnce) {
  std::vector<std::string> warnings;
  track::PlotConfig odd = config();
  // U+0378 is not assigned.
  odd.title = "tiny: runs/\xcd\xb8 and \xcd\xb8";
  odd.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  track::PlotTracker tracker(odd);
  tracker.record({.step = 1, .metrics = {{"train/loss", 1}}});
  tracker.tick(1000);
  tracker.finish(0);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("question marks for \xcd\xb8: no font"),
            std::string::npos)
      << warnings[0];
}

TEST_F(PlotTrackerTest, ARunWithoutValuesHasNoImages) {
  track::PlotTracker tracker(config());
  tracker.finish(0);
  EXPECT_FALSE(is_drawn());
}

TEST_F(PlotTrackerTest, AFolderThatVanishedIsAnErrorAndTriedAgainLater) {
  track::PlotConfig vanished = config();
  vanished.folder = folder_.path() / "gone";
  track::PlotTracker tracker(vanished);
  tracker.record({.step = 1, .metrics = {{"train/loss", 1}}});
  EXPECT_THROW(tracker.tick(1000), IoError);
  EXPECT_NO_THROW(tracker.tick(1001));
  std::filesystem::create_directory(vanished.folder);
  tracker.tick(1031);
  EXPECT_TRUE(std::filesystem::exists(vanished.folder / "loss.png"));
}

}  // namespace
}  // namespace lockstep
