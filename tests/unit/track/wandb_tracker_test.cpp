#include "lockstep/track/wandb_tracker.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/formats/png.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"
#include "unit/track/wandb_config_in.h"
#include "wandb_reading.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::FileSizeLimit;
using testing::history_of;
using testing::HistoryRow;
using testing::kinds_of;
using testing::kWandbStart;
using testing::records_of;
using testing::summary_of;
using testing::TempDir;
using testing::wandb_config_in;

std::string image_bytes() {
  const std::vector<uint8_t> pixels(6 * 4 * 3, 9);
  return formats::encode_png({.width = 6, .height = 4, .pixels = pixels});
}

TEST(WandbTracker, TheRunStandsBeforeEverythingElse) {
  const TempDir folder;
  track::WandbConfig config = wandb_config_in(folder);
  config.project = "p";
  config.name = "n";
  config.entity = "e";
  config.run_id = "my-id";
  config.group = "g";
  config.job_type = "j";
  config.notes = "some";
  config.tags = {"a", "b"};
  config.config_json =
      R"({"optimizer":{"lr":0.1,"betas":[0.9,0.95]},"seed":3})";
  config.program = "lockstep-worker";
  config.arguments = {"train", "--seed", "3"};
  config.start_time = kWandbStart + 0.25;
  const track::WandbTracker tracker(config, {});
  EXPECT_EQ(tracker.name(), "wandb");
  EXPECT_EQ(tracker.run_id(), "my-id");
  const auto records = records_of(tracker.folder());
  ASSERT_EQ(kinds_of(records),
            (std::vector<std::string>{"header", "run", "environment"}));
  EXPECT_EQ(records[0].header().version().producer(), "lockstep");
  const auto& run = records[1].run();
  EXPECT_EQ(run.run_id(), "my-id");
  EXPECT_EQ(run.project(), "p");
  EXPECT_EQ(run.display_name(), "n");
  EXPECT_EQ(run.entity(), "e");
  EXPECT_EQ(run.run_group(), "g");
  EXPECT_EQ(run.job_type(), "j");
  EXPECT_EQ(run.notes(), "some");
  EXPECT_EQ(run.tags_size(), 2);
  EXPECT_EQ(run.tags(1), "b");
  EXPECT_EQ(run.start_time().seconds(), 1700000000);
  EXPECT_EQ(run.start_time().nanos(), 250000000);
  ASSERT_EQ(run.config().update_size(), 2);
  EXPECT_EQ(run.config().update(0).key(), "optimizer");
  EXPECT_EQ(run.config().update(0).value_json(),
            R"({"lr":0.1,"betas":[0.9,0.95]})");
  EXPECT_EQ(run.config().update(1).key(), "seed");
  EXPECT_EQ(run.config().update(1).value_json(), "3");
  const auto& environment = records[2].environment();
  EXPECT_TRUE(environment.os().starts_with("Linux-"));
  EXPECT_EQ(environment.program(), "lockstep-worker");
  EXPECT_EQ(environment.args_size(), 3);
  EXPECT_GE(environment.cpu_count(), 1);
  EXPECT_GT(environment.memory().total(), 1 << 20);
}

TEST(WandbTracker, DefaultsAreAProjectAndADrawnId) {
  const TempDir folder;
  const track::WandbTracker one(wandb_config_in(folder), {});
  const track::WandbTracker two(wandb_config_in(folder), {});
  EXPECT_NE(one.run_id(), two.run_id());
  EXPECT_EQ(records_of(one.folder())[1].run().project(), "lockstep");
}

TEST(WandbTracker, ValuesOfOneStepAreOneRecord) {
  const TempDir folder;
  track::WandbTracker tracker(wandb_config_in(folder), {});
  tracker.record({.step = 1,
                  .unix_time = kWandbStart + 2,
                  .metrics = {{"train/loss", 0.5}, {"lr", 1e-20}}});
  tracker.record({.step = 1,
                  .unix_time = kWandbStart + 3.5,
                  .metrics = {{"val/loss", 1}, {"lr", 0.1 + 0.2}}});
  EXPECT_TRUE(history_of(records_of(tracker.folder())).empty());
  tracker.record({.step = 2,
                  .unix_time = kWandbStart + 4,
                  .metrics = {{"train/loss", 0.25}}});
  const HistoryRow first = {{"train/loss", "0.5"},
                            {"val/loss", "1"},
                            {"lr", "0.30000000000000004"},
                            {"_step", "1"},
                            {"_runtime", "3.5"}};
  EXPECT_EQ(history_of(records_of(tracker.folder())),
            std::vector<HistoryRow>{first});
  tracker.finish(0);
  const auto rows = history_of(records_of(tracker.folder()));
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(
      rows[1],
      (HistoryRow{{"train/loss", "0.25"}, {"_step", "2"}, {"_runtime", "4"}}));
}

TEST(WandbTracker, TheSummaryHoldsTheLastValuesAndTheTime) {
  const TempDir folder;
  track::WandbTracker tracker(wandb_config_in(folder), {});
  tracker.record({.step = 1,
                  .unix_time = kWandbStart + 1,
                  .metrics = {{"train/loss", 3}, {"val/loss", 4}}});
  tracker.record({.step = 2,
                  .unix_time = kWandbStart + 2,
                  .metrics = {{"train/loss", 2}}});
  tracker.console({.unix_time = kWandbStart + 7.5, .text = "done\n"});
  tracker.finish(3);
  const auto records = records_of(tracker.folder());
  EXPECT_EQ(kinds_of(records),
            (std::vector<std::string>{"header", "run", "environment", "summary",
                                      "history", "output", "summary", "history",
                                      "summary", "exit", "final", "footer"}));
  EXPECT_EQ(summary_of(records), (HistoryRow{{"train/loss", "2"},
                                             {"val/loss", "4"},
                                             {"_step", "2"},
                                             {"_runtime", "7.5"},
                                             {"_wandb.runtime", "7"}}));
  const auto& exit = records[records.size() - 3].exit();
  EXPECT_EQ(exit.exit_code(), 3);
  EXPECT_EQ(exit.runtime(), 7);
}

TEST(WandbTracker, NumbersThatJsonLacksStandBare) {
  const TempDir folder;
  track::WandbTracker tracker(wandb_config_in(folder), {});
  tracker.record(
      {.step = 1, .metrics = {{"a", NAN}, {"b", INFINITY}, {"c", -INFINITY}}});
  tracker.finish(0);
  const auto row = history_of(records_of(tracker.folder())).at(0);
  EXPECT_EQ(row.at("a"), "NaN");
  EXPECT_EQ(row.at("b"), "Infinity");
  EXPECT_EQ(row.at("c"), "-Infinity");
}

TEST(WandbTracker, ImagesAreFilesWithTheirSize) {
  const TempDir folder;
  track::WandbTracker tracker(wandb_config_in(folder), {});
  tracker.record({.step = 5, .images = {{"samples/cfg 2*", image_bytes()}}});
  tracker.finish(0);
  const auto records = records_of(tracker.folder());
  const auto row = history_of(records).at(0);
  const std::string digest = row.at("samples/cfg 2*.sha256").substr(1, 64);
  const std::string path =
      "media/images/samples/cfg_2__5_" + digest.substr(0, 20) + ".png";
  EXPECT_EQ(row.at("samples/cfg 2*._type"), "\"image-file\"");
  EXPECT_EQ(row.at("samples/cfg 2*.path"), "\"" + path + "\"");
  EXPECT_EQ(row.at("samples/cfg 2*.format"), "\"png\"");
  EXPECT_EQ(row.at("samples/cfg 2*.size"),
            std::to_string(image_bytes().size()));
  EXPECT_EQ(row.at("samples/cfg 2*.width"), "6");
  EXPECT_EQ(row.at("samples/cfg 2*.height"), "4");
  EXPECT_EQ(base::read_file(tracker.folder() / "files" / path), image_bytes());
  ASSERT_EQ(kinds_of(records)[3], "files") << "before the history";
  EXPECT_EQ(records[3].files().files(0).path(), path);
}

TEST(WandbTracker, NoTitleLeadsOutOfTheFolder) {
  const TempDir folder;
  track::WandbTracker tracker(wandb_config_in(folder), {});
  tracker.record({.step = 5,
                  .images = {{"../../../x", image_bytes()},
                             {"/etc/y", image_bytes()},
                             {"", image_bytes()}}});
  tracker.finish(0);
  const auto rows = history_of(records_of(tracker.folder()));
  for (const auto& [key, value] : rows.at(0)) {
    if (!key.ends_with("path")) continue;
    EXPECT_TRUE(value.starts_with("\"media/images/")) << value;
    EXPECT_EQ(value.find(".."), std::string::npos) << value;
  }
}

TEST(WandbTracker, TextsBecomePages) {
  const TempDir folder;
  track::WandbTracker tracker(wandb_config_in(folder), {});
  tracker.record({.step = 5, .texts = {{"note", "a < b & c"}}});
  tracker.finish(0);
  const auto row = history_of(records_of(tracker.folder())).at(0);
  EXPECT_EQ(row.at("note._type"), "\"html-file\"");
  const std::string quoted = row.at("note.path");
  const std::string page = base::read_file(tracker.folder() / "files" /
                                           quoted.substr(1, quoted.size() - 2));
  EXPECT_NE(page.find(">a &lt; b &amp; c</pre>"), std::string::npos) << page;
}

TEST(WandbTracker, ConsoleTextsKeepTheirStream) {
  const TempDir folder;
  track::WandbTracker tracker(wandb_config_in(folder), {});
  tracker.console({.unix_time = kWandbStart + 0.5, .text = "hello\n"});
  tracker.console(
      {.unix_time = kWandbStart, .is_error = true, .text = "bad\xff\n"});
  const auto records = records_of(tracker.folder());
  EXPECT_EQ(records[3].output().stream(), wandb::Output::STDOUT);
  EXPECT_EQ(records[3].output().line(), "hello\n");
  EXPECT_EQ(records[3].output().timestamp().nanos(), 500000000);
  EXPECT_EQ(records[4].output().stream(), wandb::Output::STDERR);
  EXPECT_EQ(records[4].output().line(), "bad\xef\xbf\xbd\n");
}

TEST(WandbTracker, TheMachineIsMeasuredEvery15Seconds) {
  const TempDir folder;
  track::WandbTracker tracker(wandb_config_in(folder), {});
  for (int second = 0; second <= 31; ++second)
    tracker.tick(kWandbStart + second);
  const auto records = records_of(tracker.folder());
  ASSERT_EQ(records.size(), 3 + 3);
  EXPECT_EQ(records[5].stats().timestamp().seconds(), 1700000030);
  std::vector<std::string> keys;
  for (const auto& item : records[5].stats().item()) keys.push_back(item.key());
  EXPECT_NE(std::find(keys.begin(), keys.end(), "proc.memory.rssMB"),
            keys.end());
}

TEST(WandbTracker, NoSecretReachesTheDisk) {
  const TempDir folder;
  track::WandbConfig config = wandb_config_in(folder);
  config.config_json = R"({"hub":{"api_key":"S3CRET"},"token":"S3CRET"})";
  config.arguments = {"--token", "S3CRET", "--password=S3CRET"};
  config.state_file = folder.path() / "state.json";
  config = track::with_environment(config, {{"WANDB_API_KEY", "S3CRET"}});
  track::WandbTracker tracker(config, {});
  tracker.finish(0);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(base::read_file(entry.path()).find("S3CRET"), std::string::npos)
        << entry.path();
  }
  const auto records = records_of(tracker.folder());
  EXPECT_EQ(records[1].run().config().update(0).value_json(),
            R"({"api_key":"***"})");
  EXPECT_EQ(records[2].environment().args(1), "***");
}

TEST(WandbTracker, AFullDiskCostsOnlyTheStepsOfItsTime) {
  const TempDir folder;
  track::WandbTracker tracker(wandb_config_in(folder), {});
  tracker.record({.step = 1, .metrics = {{"a", 1}}});
  tracker.record({.step = 2, .metrics = {{"a", 2}}});
  const auto log = tracker.folder() / ("run-" + tracker.run_id() + ".wandb");
  {
    const FileSizeLimit limit(fs::file_size(log) + 10);
    EXPECT_THROW(tracker.record({.step = 3, .metrics = {{"a", 3}}}), IoError);
    EXPECT_THROW(tracker.console({.text = "hello\n"}), IoError);
    EXPECT_EQ(history_of(records_of(tracker.folder())).size(), 1);
  }
  tracker.record({.step = 4, .metrics = {{"a", 4}}});
  tracker.finish(0);
  const auto rows = history_of(records_of(tracker.folder()));
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[0].at("a"), "1");
  EXPECT_EQ(rows[1].at("a"), "3");
  EXPECT_EQ(rows[2].at("a"), "4");
}

TEST(WandbTracker, AImageThatCannotBeWrittenCostsOnlyItself) {
  const TempDir folder;
  track::WandbTracker tracker(wandb_config_in(folder), {});
  // A file stands where the image's folder must be made.
  const auto files = tracker.folder() / "files";
  folder.write("blocker", "");
  fs::rename(folder.path() / "blocker", files / "media");
  EXPECT_THROW(
      tracker.record(
          {.step = 1, .metrics = {{"a", 1}}, .images = {{"p", image_bytes()}}}),
      IoError);
  fs::remove(files / "media");
  tracker.record(
      {.step = 2, .metrics = {{"a", 2}}, .images = {{"p", image_bytes()}}});
  tracker.finish(0);
  const auto rows = history_of(records_of(tracker.folder()));
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].at("a"), "1");
  EXPECT_FALSE(rows[0].contains("p.path"));
  EXPECT_TRUE(rows[1].contains("p.path"));
}

}  // namespace
}  // namespace lockstep
