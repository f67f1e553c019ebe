#include "lockstep/track/metrics_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

TEST(MetricsFile, EveryLineIsARecordWithAllDigits) {
  const TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  MetricsFile file(path, {});
  EXPECT_TRUE(file.append(3, {{"train/loss", 0.1 + 0.2}, {"val/x", 2}}));
  EXPECT_TRUE(file.append(4, {}));
  EXPECT_EQ(read_file(path),
            "{\"step\":3,\"train/loss\":0.30000000000000004,\"val/x\":2.0}\n"
            "{\"step\":4}\n");
}

TEST(MetricsFile, NumbersThatJsonLacksAreTexts) {
  const TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  MetricsFile(path, {}).append(1,
                               {{"a", NAN}, {"b", INFINITY}, {"c", -INFINITY}});
  EXPECT_EQ(read_file(path),
            "{\"step\":1,\"a\":\"nan\",\"b\":\"inf\",\"c\":\"-inf\"}\n");
}

TEST(MetricsFile, GoingOnDropsWhatCameAfterTheCheckpoint) {
  const TempDir folder;
  const std::string kept =
      "{\"step\":1,\"a\":1.0}\n{\"step\":2,\"a\":2.0}\n{\"step\":2,\"b\":5}\n";
  const std::string path = folder.write(
      "metrics.jsonl", kept + "{\"step\":3,\"a\":3.0}\n{\"step\":10}\n");
  MetricsFile(path, {.last_step = 2}).append(3, {{"a", 4}});
  EXPECT_EQ(read_file(path), kept + "{\"step\":3,\"a\":4.0}\n");
}

TEST(MetricsFile, GoingOnDropsWhatIsDoneAgain) {
  const TempDir folder;
  const std::string earlier = "{\"step\":1,\"val/a\":1.0}\n";
  const std::string log = "{\"step\":2,\"train/a\":2.0}\n";
  const std::string path = folder.write(
      "metrics.jsonl", earlier + log + "{\"step\":2,\"val/a\":3.0}\n");
  const MetricsFile file(path, {.last_step = 2, .redone = "val/"});
  EXPECT_EQ(read_file(path), earlier + log);
}

TEST(MetricsFile, ALineThatWasCutOffIsDropped) {
  const TempDir folder;
  for (const char* rest : {"{\"step\":2,\"a", "{\"step\":", "{", "garbage\n",
                           "[1]\n", "{\"a\":1}\n", "\n"}) {
    const std::string path =
        folder.write("metrics.jsonl", std::string("{\"step\":1}\n") + rest);
    MetricsFile(path, {.last_step = 5}).append(2, {});
    EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":2}\n") << rest;
  }
}

TEST(MetricsFile, AFreshRunStartsEmpty) {
  const TempDir folder;
  const std::string path = folder.write("metrics.jsonl", "{\"step\":1}\n");
  const MetricsFile file(path, {});
  EXPECT_EQ(read_file(path), "");
}

TEST(MetricsFile, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(MetricsFile("/no/such/folder/metrics.jsonl", {}), IoError);
}

}  // namespace
}  // namespace lockstep
