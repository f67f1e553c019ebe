#include "lockstep/track/csv_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.h"
#include "lockstep/track/metrics_file.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::FileSizeLimit;
using testing::TempDir;

class CsvFileTest : public ::testing::Test {
 protected:
  std::string text() const { return base::read_file(path_); }

  const TempDir folder_;
  const std::filesystem::path path_ = folder_.path() / "metrics.csv";
  const std::filesystem::path metrics_ = folder_.path() / "metrics.jsonl";
};

TEST_F(CsvFileTest, EveryStepIsARowWithAllDigits) {
  track::CsvFile file(path_, metrics_);
  EXPECT_EQ(text(), "step\n");
  file.record({.step = 1, .metrics = {{"loss", 0.1 + 0.2}, {"lr", 2}}});
  file.record({.step = 2, .metrics = {{"lr", 1e-300}, {"loss", -5}}});
  EXPECT_EQ(text(), "step,loss,lr\n1,0.30000000000000004,2\n2,-5,1e-300\n");
}

TEST_F(CsvFileTest, RecordsOfOneStepShareARow) {
  track::CsvFile file(path_, metrics_);
  file.record({.step = 1, .metrics = {{"a", 123456}, {"b", 2}}});
  file.record({.step = 1, .metrics = {{"c", 3}}});
  file.record({.step = 2, .metrics = {{"a", 4}}});
  file.record({.step = 2, .metrics = {{"c", 5}}});
  file.record({.step = 2, .metrics = {{"a", 6}}});
  EXPECT_EQ(text(), "step,a,b,c\n1,123456,2,3\n2,6,,5\n");
}

TEST_F(CsvFileTest, ANewMetricWidensEarlierRows) {
  track::CsvFile file(path_, metrics_);
  file.record({.step = 0, .metrics = {{"a", 1}}});
  file.record({.step = 1, .metrics = {{"a", 2}}});
  file.record({.step = 2, .metrics = {{"b", 3}, {"c", 4}}});
  EXPECT_EQ(text(), "step,a,b,c\n0,1,,\n1,2,,\n2,,3,4\n");
}

TEST_F(CsvFileTest, NumbersThatAreNoneHaveNames) {
  track::CsvFile file(path_, metrics_);
  file.record(
      {.step = 1,
       .metrics = {{"a", -std::abs(NAN)}, {"b", INFINITY}, {"c", -INFINITY}}});
  EXPECT_EQ(text(), "step,a,b,c\n1,nan,inf,-inf\n");
}

TEST_F(CsvFileTest, OddNamesAreQuoted) {
  track::CsvFile file(path_, metrics_);
  file.record({.step = 1,
               .metrics = {{"a,b", 1}, {"say \"x\"", 2}, {"two\nlines", 3}}});
  file.record({.step = 2, .metrics = {{"d", 4}}});
  EXPECT_EQ(text(),
            "step,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",d\n"
            "1,1,2,3,\n2,,,,4\n");
}

TEST_F(CsvFileTest, ImagesAndNotesMakeNoRow) {
  track::CsvFile file(path_, metrics_);
  file.record({.step = 1, .texts = {{.title = "note", .text = "x"}}});
  EXPECT_EQ(text(), "step\n");
}

TEST_F(CsvFileTest, GoingOnBeginsWithTheKeptLinesOfTheMetrics) {
  folder_.write("metrics.csv", "of an earlier part");
  folder_.write("metrics.jsonl",
                "{\"step\":1,\"a\":\"nan\"}\n{\"step\":2,\"a\":0.25}\n"
                "{\"step\":2,\"val/b\":7.0}\n{\"step\":3,\"a\":9}\n");
  track::MetricsFile(metrics_, {.last_step = 2, .redone = "val/"});
  track::CsvFile file(path_, metrics_);
  EXPECT_EQ(text(), "step,a\n1,nan\n2,0.25\n");
  file.record({.step = 2, .metrics = {{"val/b", 8}}});
  EXPECT_EQ(text(), "step,a,val/b\n1,nan,\n2,0.25,8\n");
}

TEST_F(CsvFileTest, AFullDiskLeavesWholeRowsAndLaterOnesFollow) {
  track::CsvFile file(path_, metrics_);
  file.record({.step = 1, .metrics = {{"a", 1}}});
  const std::string before = text();
  {
    const FileSizeLimit limit(before.size() + 2);
    EXPECT_THROW(file.record({.step = 2, .metrics = {{"a", 2}}}), IoError);
    EXPECT_THROW(file.record({.step = 3, .metrics = {{"b", 2}}}), IoError);
    EXPECT_EQ(text(), before);
  }
  file.record({.step = 4, .metrics = {{"a", 4}}});
  EXPECT_EQ(text(), "step,a,b\n1,1,\n4,4,\n");
}

TEST_F(CsvFileTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(track::CsvFile("/no/such/folder/metrics.csv", metrics_),
               IoError);
}

}  // namespace
}  // namespace lockstep
