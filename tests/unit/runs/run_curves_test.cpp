#include "lockstep/runs/run_curves.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/runs/last_values.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

class RunCurvesTest : public ::testing::Test {
 protected:
  void append(const std::string& text) const {
    std::ofstream(folder_.path() / "metrics.jsonl", std::ios::app) << text;
  }
  void replace(const std::string& text) const {
    folder_.write("new", text);
    std::filesystem::rename(folder_.path() / "new",
                            folder_.path() / "metrics.jsonl");
  }
  static std::string record(int64_t step, double loss) {
    return "{\"step\":" + std::to_string(step) +
           ",\"train/loss\":" + std::to_string(loss) + "}\n";
  }

  const testing::TempDir folder_;
  const runs::FolderTree tree_{folder_.path()};
};

TEST_F(RunCurvesTest, GrowWithTheFileByWholeLines) {
  runs::RunCurves curves(".");
  EXPECT_FALSE(curves.update(tree_));
  append(record(1, 4) + "{\"step\":2,\"train/lo");
  EXPECT_TRUE(curves.update(tree_));
  EXPECT_EQ(curves.find("train/loss")->num_values(), 1);
  append("ss\":3}\n" + record(3, 2));
  EXPECT_TRUE(curves.update(tree_));
  EXPECT_FALSE(curves.update(tree_));
  ASSERT_EQ(curves.find("train/loss")->num_values(), 3);
  EXPECT_EQ(curves.find("train/loss")->last()->y, 2);
  EXPECT_EQ(curves.find("val/loss"), nullptr);
}

TEST_F(RunCurvesTest, AFileThatAResumeWroteAnewIsReadAgain) {
  runs::RunCurves curves(".");
  append(record(1, 4) + record(2, 3));
  curves.update(tree_);
  replace(record(1, 4));
  EXPECT_TRUE(curves.update(tree_));
  EXPECT_EQ(curves.find("train/loss")->num_values(), 1);
  std::filesystem::remove(folder_.path() / "metrics.jsonl");
  EXPECT_TRUE(curves.update(tree_));
  EXPECT_TRUE(curves.metrics().empty());
}

TEST_F(RunCurvesTest, MalformedAndHugeLinesAreSkipped) {
  runs::RunCurves curves(".");
  append("\n{}\nnot json\n\xff\xff\n[1,2]\n" + std::string(3 << 20, '{') +
         "\n" + record(5, 1) + record(4, 9) + std::string(2 << 20, 'x'));
  curves.update(tree_);
  append(std::string(2 << 20, 'x') + "\n" + record(6, 2));
  curves.update(tree_);
  // A step that goes back is not part of a curve.
  EXPECT_EQ(curves.find("train/loss")->num_values(), 2);
}

TEST_F(RunCurvesTest, TheNumberOfMetricsIsBounded) {
  std::string line = "{\"step\":1";
  for (int i = 0; i < 5000; ++i) line += ",\"m" + std::to_string(i) + "\":1";
  append(line + "}\n");
  runs::RunCurves curves(".");
  curves.update(tree_);
  EXPECT_EQ(curves.metrics().size(), 200U);
}

TEST_F(RunCurvesTest, LastValuesAreThoseOfTheEndAndTheBestOfAll) {
  std::string text;
  for (int step = 1; step <= 4000; ++step) {
    text += record(step, 1.0 / step);
    if (step % 1000 == 0) {
      text += "{\"step\":" + std::to_string(step) +
              ",\"val/iou\":" + std::to_string(step == 2000 ? 0.75 : 0.5) +
              "}\n";
    }
  }
  append(text);
  runs::LastValues values(".");
  const track::PlottedMetric best{.name = "val/iou",
                                  .better = plot::Direction::kHigher};
  EXPECT_TRUE(values.update(tree_, best));
  EXPECT_EQ(values.step(), 4000);
  EXPECT_EQ(values.loss()->value, 0.00025);
  EXPECT_EQ(values.best()->step, 2000);
  EXPECT_EQ(values.best()->value, 0.75);
  append("{\"step\":4001,\"val/iou\":0.875,\"perf/samples_per_second\":3}\n");
  EXPECT_TRUE(values.update(tree_, best));
  EXPECT_EQ(values.step(), 4001);
  EXPECT_EQ(values.best()->step, 4001);
  EXPECT_EQ(values.samples_per_second(), 3);
  EXPECT_EQ(values.loss()->value, 0.00025);
}

TEST_F(RunCurvesTest, WithoutANameTheLowestValidationLossIsTheBest) {
  append(
      "{\"step\":1,\"val/loss\":3}\n{\"step\":2,\"val/loss\":2}\n"
      "{\"step\":3,\"val/loss\":\"nan\"}\n{\"step\":4,\"val/loss\":4}\n");
  runs::LastValues values(".");
  values.update(tree_, {});
  EXPECT_EQ(values.best()->step, 2);
  EXPECT_EQ(values.best_name(), "val/loss");
  EXPECT_FALSE(values.loss());
}

}  // namespace
}  // namespace lockstep
