#include "lockstep/track/metrics_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

TEST(MetricsFile, EveryLineIsARecordWithAllDigits) {
  const TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  track::MetricsFile file(path, {});
  file.record(
      {.step = 3, .metrics = {{"train/loss", 0.1 + 0.2}, {"val/x", 2}}});
  file.record({.step = 4, .metrics = {{"a", 1}}});
  EXPECT_EQ(base::read_file(path),
            "{\"step\":3,\"train/loss\":0.30000000000000004,\"val/x\":2.0}\n"
            "{\"step\":4,\"a\":1.0}\n");
}

TEST(MetricsFile, NumbersThatJsonLacksAreTexts) {
  const TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  track::MetricsFile(path, {}).record(
      {.step = 1, .metrics = {{"a", NAN}, {"b", INFINITY}, {"c", -INFINITY}}});
  EXPECT_EQ(base::read_file(path),
            "{\"step\":1,\"a\":\"nan\",\"b\":\"inf\",\"c\":\"-inf\"}\n");
}

TEST(MetricsFile, GoingOnDropsWhatCameAfterTheCheckpoint) {
  const TempDir folder;
  const std::string kept =
      "{\"step\":1,\"a\":1.0}\n{\"step\":2,\"a\":2.0}\n{\"step\":2,\"b\":5}\n";
  const std::string path = folder.write(
      "metrics.jsonl", kept + "{\"step\":3,\"a\":3.0}\n{\"step\":10}\n");
  track::MetricsFile(path, {.last_step = 2})
      .record({.step = 3, .metrics = {{"a", 4}}});
  EXPECT_EQ(base::read_file(path), kept + "{\"step\":3,\"a\":4.0}\n");
}

TEST(MetricsFile, GoingOnDropsWhatIsDoneAgain) {
  const TempDir folder;
  const std::string earlier = "{\"step\":1,\"val/a\":1.0}\n";
  const std::string log = "{\"step\":2,\"train/a\":2.0}\n";
  const std::string path = folder.write(
      "metrics.jsonl", earlier + log + "{\"step\":2,\"val/a\":3.0}\n");
  const track::MetricsFile file(path, {.last_step = 2, .redone = "val/"});
  EXPECT_EQ(base::read_file(path), earlier + log);
}

TEST(MetricsFile, ALineThatWasCutOffIsDropped) {
  const TempDir folder;
  for (const char* rest : {"{\"step\":2,\"a", "{\"step\":", "{", "garbage\n",
                           "[1]\n", "{\"a\":1}\n", "\n"}) {
    const std::string path =
        folder.write("metrics.jsonl", std::string("{\"step\":1}\n") + rest);
    track::MetricsFile(path, {.last_step = 5})
        .record({.step = 2, .metrics = {{"b", 2}}});
    EXPECT_EQ(base::read_file(path), "{\"step\":1}\n{\"step\":2,\"b\":2.0}\n")
        << rest;
  }
}

TEST(MetricsFile, AFreshRunStartsEmpty) {
  const TempDir folder;
  const std::string path = folder.write("metrics.jsonl", "{\"step\":1}\n");
  const track::MetricsFile file(path, {});
  EXPECT_EQ(base::read_file(path), "");
}

TEST(MetricsFile, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(track::MetricsFile("/no/such/folder/metrics.jsonl", {}),
               IoError);
}

TEST(MetricsFile, ImagesAndNotesMakeNoLine) {
  const TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  track::MetricsFile(path, {}).record(
      {.step = 1, .texts = {{.title = "note", .text = "x"}}});
  EXPECT_EQ(base::read_file(path), "");
}

TEST(MetricsFile, ANameThatIsNoTextIsStillWritten) {
  const TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  track::MetricsFile(path, {}).record({.step = 1, .metrics = {{"a\xff", 1}}});
  EXPECT_EQ(base::read_file(path), "{\"step\":1,\"a\xef\xbf\xbd\":1.0}\n");
}

TEST(MetricsFile, AFullDiskLeavesWholeLinesAndLaterOnesFollow) {
  const TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  track::MetricsFile file(path, {});
  file.record({.step = 1, .metrics = {{"a", 1}}});
  {
    const testing::FileSizeLimit limit(25);
    EXPECT_THROW(file.record({.step = 2, .metrics = {{"a", 2}}}), IoError);
  }
  file.record({.step = 3, .metrics = {{"a", 3}}});
  EXPECT_EQ(base::read_file(path),
            "{\"step\":1,\"a\":1.0}\n{\"step\":3,\"a\":3.0}\n");
}

TEST(MetricsFile, RecordsAreReadBackByValue) {
  const TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  track::MetricsFile file(path, {});
  file.record({.step = 7, .metrics = {{"a", 0.1}, {"b", -INFINITY}}});
  file.record({.step = 8, .metrics = {{"a", NAN}, {"b", INFINITY}}});
  std::vector<track::Record> read;
  track::read_metrics(
      path, [&](track::Record record) { read.push_back(std::move(record)); });
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].step, 7);
  const std::vector<std::pair<std::string, double>> first = {{"a", 0.1},
                                                             {"b", -INFINITY}};
  EXPECT_EQ(read[0].metrics, first);
  EXPECT_EQ(read[1].step, 8);
  EXPECT_TRUE(std::isnan(read[1].metrics.at(0).second));
  EXPECT_EQ(read[1].metrics.at(1).second, INFINITY);
}

TEST(MetricsFile, OneThatIsNotThereHoldsNothing) {
  int count = 0;
  track::read_metrics("/no/such/folder/metrics.jsonl",
                      [&](track::Record) { ++count; });
  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace lockstep
