#include "lockstep/track/wandb_resume.h"

#include <gtest/gtest.h>

#include "lockstep/base/files.h"
#include "lockstep/formats/png.h"
#include "lockstep/track/wandb_tracker.h"
#include "support/temp_dir.h"
#include "unit/track/wandb_config_in.h"
#include "wandb_reading.h"

namespace lockstep {
namespace {

std::string one_pixel() {
  const uint8_t grey = 7;
  return formats::encode_png(
      {.width = 1, .height = 1, .channels = 1, .pixels = {&grey, 1}});
}

namespace fs = std::filesystem;
using testing::history_of;
using testing::kinds_of;
using testing::kWandbStart;
using testing::records_of;
using testing::summary_of;
using testing::TempDir;

track::WandbConfig resumable_config_in(const TempDir& folder,
                                       double start_time = kWandbStart) {
  track::WandbConfig config = testing::wandb_config_in(folder, start_time);
  config.state_file = folder.path() / "state.json";
  return config;
}

track::Record values(int64_t step, const std::string& name, double value,
                     double seconds) {
  return {.step = step,
          .unix_time = kWandbStart + seconds,
          .metrics = {{name, value}}};
}

// Steps 1 to 4, each 10 s, with an image at 2 and 4 and validation at 2.
void record_four_steps(track::Tracker& tracker) {
  for (int step = 1; step <= 4; ++step) {
    track::Record record = values(step, "train/loss", 1.0 / step, 10.0 * step);
    if (step % 2 == 0) record.images = {{"samples", one_pixel()}};
    tracker.record(record);
    if (step == 2) tracker.record(values(2, "val/loss", 7, 25));
  }
}

std::vector<std::string> files_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(entry.path().filename());
  }
  return names;
}

TEST(WandbResume, TheSameRunGoesOnWithoutFoldingBack) {
  const TempDir folder;
  fs::path run_folder;
  std::string id;
  {
    track::WandbTracker tracker(resumable_config_in(folder), {});
    record_four_steps(tracker);
    tracker.console({.unix_time = kWandbStart + 41, .text = "one\n"});
    tracker.finish(1);
    run_folder = tracker.folder();
    id = tracker.run_id();
  }
  EXPECT_EQ(files_of(run_folder / "files").size(), 2);
  track::WandbTracker tracker(resumable_config_in(folder, kWandbStart + 1000),
                              track::KeptRecords{.last_step = 2});
  EXPECT_EQ(tracker.folder(), run_folder);
  EXPECT_EQ(tracker.run_id(), id);
  EXPECT_EQ(tracker.note(), "");
  EXPECT_EQ(files_of(run_folder / "files").size(), 1)
      << "the image of step 4 is dropped";
  tracker.record(values(3, "train/loss", 9, 1005));
  tracker.finish(0);
  const auto records = records_of(run_folder);
  EXPECT_EQ(kinds_of(records),
            (std::vector<std::string>{"header", "run", "environment", "summary",
                                      "history", "output", "files", "summary",
                                      "history", "summary", "history",
                                      "summary", "exit", "final", "footer"}));
  EXPECT_EQ(records[1].run().start_time().seconds(), 1700000000);
  const auto rows = history_of(records);
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[0].at("train/loss"), "1");
  EXPECT_EQ(rows[1].at("train/loss"), "0.5");
  EXPECT_EQ(rows[1].at("val/loss"), "7");
  EXPECT_EQ(rows[1].at("_runtime"), "25");
  EXPECT_EQ(rows[1].count("samples.path"), 1);
  EXPECT_EQ(rows[2].at("train/loss"), "9");
  EXPECT_EQ(rows[2].at("_runtime"), "30") << "goes on, without the pause";
  EXPECT_EQ(summary_of(records).at("train/loss"), "9");
  EXPECT_EQ(summary_of(records).at("_step"), "3");
  EXPECT_EQ(records[12].exit().exit_code(), 0);
}

TEST(WandbResume, WhatIsDoneAgainReplacesItself) {
  const TempDir folder;
  {
    track::WandbTracker tracker(resumable_config_in(folder), {});
    record_four_steps(tracker);
  }
  track::WandbTracker tracker(
      resumable_config_in(folder),
      track::KeptRecords{.last_step = 2, .redone = "val/"});
  tracker.record(values(2, "val/loss", 8, 26));
  tracker.finish(0);
  const auto rows = history_of(records_of(tracker.folder()));
  ASSERT_EQ(rows.size(), 2) << "one record per step";
  EXPECT_EQ(rows[1].at("train/loss"), "0.5");
  EXPECT_EQ(rows[1].at("val/loss"), "8");
  EXPECT_EQ(summary_of(records_of(tracker.folder())).at("val/loss"), "8");
}

TEST(WandbResume, WhatIsDoneAgainIsGoneUntilThen) {
  const TempDir folder;
  {
    track::WandbTracker tracker(resumable_config_in(folder), {});
    record_four_steps(tracker);
  }
  track::WandbTracker tracker(
      resumable_config_in(folder),
      track::KeptRecords{.last_step = 2, .redone = "val/"});
  tracker.finish(0);
  const auto records = records_of(tracker.folder());
  EXPECT_FALSE(history_of(records).at(1).contains("val/loss"));
  EXPECT_FALSE(summary_of(records).contains("val/loss"));
}

TEST(WandbResume, AKilledRunLosesNoStep) {
  const TempDir folder;
  {
    track::WandbTracker tracker(resumable_config_in(folder), {});
    record_four_steps(tracker);
    EXPECT_EQ(history_of(records_of(tracker.folder())).size(), 3);
  }
  for (int time = 0; time < 2; ++time) {
    const track::WandbTracker tracker(resumable_config_in(folder),
                                      track::KeptRecords{.last_step = 4});
  }
  track::WandbTracker tracker(resumable_config_in(folder),
                              track::KeptRecords{.last_step = 4});
  tracker.finish(0);
  const auto rows = history_of(records_of(tracker.folder()));
  ASSERT_EQ(rows.size(), 4);
  EXPECT_EQ(rows[3].at("train/loss"), "0.25");
  EXPECT_TRUE(rows[3].contains("samples.path"));
}

TEST(WandbResume, ARunKilledWhileItWroteAStepHoldsItOnce) {
  const TempDir folder;
  std::string open_step;
  {
    track::WandbTracker tracker(resumable_config_in(folder), {});
    tracker.record(values(1, "a", 1, 1));
    tracker.record(values(2, "a", 2, 2));
    open_step = base::read_file(
        track::WandbRun{tracker.run_id(), tracker.folder()}.open_step());
    tracker.record(values(3, "a", 3, 3));
  }
  const auto run = track::remembered_wandb_run(folder.path() / "state.json");
  fs::remove(run->open_step());
  fs::rename(folder.write("old", open_step), run->open_step());
  track::WandbTracker tracker(resumable_config_in(folder),
                              track::KeptRecords{.last_step = 9});
  tracker.finish(0);
  EXPECT_EQ(history_of(records_of(tracker.folder())).size(), 2);
}

TEST(WandbResume, ATornTailDoesNotMatter) {
  const TempDir folder;
  std::string id;
  {
    track::WandbTracker tracker(resumable_config_in(folder), {});
    record_four_steps(tracker);
    id = tracker.run_id();
  }
  const auto log =
      track::remembered_wandb_run(folder.path() / "state.json")->log();
  const std::string bytes = base::read_file(log);
  fs::resize_file(log, bytes.size() - 3);
  track::WandbTracker tracker(resumable_config_in(folder),
                              track::KeptRecords{.last_step = 2});
  EXPECT_EQ(tracker.run_id(), id);
  tracker.record(values(3, "train/loss", 5, 50));
  tracker.finish(0);
  EXPECT_EQ(history_of(records_of(tracker.folder())).size(), 3);
}

TEST(WandbResume, TheWholeRunIsSentAgain) {
  const TempDir folder;
  {
    const track::WandbTracker tracker(resumable_config_in(folder), {});
  }
  const auto run = track::remembered_wandb_run(folder.path() / "state.json");
  for (const char* ending : {".synced", ".syncstate"}) {
    fs::rename(folder.write("marker", ""), run->log().string() + ending);
  }
  const track::WandbTracker tracker(resumable_config_in(folder),
                                    track::KeptRecords{.last_step = 2});
  EXPECT_FALSE(fs::exists(run->log().string() + ".synced"));
  EXPECT_FALSE(fs::exists(run->log().string() + ".syncstate"));
}

TEST(WandbResume, AFolderThatIsGoneGivesANewOneOfTheSameId) {
  const TempDir folder;
  std::string id;
  fs::path gone;
  {
    const track::WandbTracker tracker(resumable_config_in(folder), {});
    id = tracker.run_id();
    gone = tracker.folder();
    fs::remove_all(gone);
  }
  const track::WandbTracker tracker(resumable_config_in(folder),
                                    track::KeptRecords{.last_step = 2});
  EXPECT_EQ(tracker.run_id(), id);
  EXPECT_EQ(tracker.note(), "the earlier part of the wandb run " + id +
                                " was not found at " + gone.string() +
                                ": a new part with the same id begins after "
                                "step 2");
  EXPECT_EQ(kinds_of(records_of(tracker.folder())),
            (std::vector<std::string>{"header", "run", "environment"}));
}

TEST(WandbResume, DamagedRecordsGiveANewFolderAndAreLeftAlone) {
  const TempDir folder;
  {
    const track::WandbTracker tracker(resumable_config_in(folder), {});
  }
  const auto run = track::remembered_wandb_run(folder.path() / "state.json");
  fs::rename(folder.write("other", "something else"), run->log());
  const track::WandbTracker tracker(resumable_config_in(folder),
                                    track::KeptRecords{.last_step = 2});
  EXPECT_EQ(tracker.run_id(), run->id);
  EXPECT_NE(tracker.folder(), run->folder);
  EXPECT_NE(tracker.note().find(" is damaged at " + run->folder.string()),
            std::string::npos)
      << tracker.note();
  EXPECT_EQ(base::read_file(run->log()), "something else");
}

TEST(WandbResume, AStateThatCannotBeReadIsTold) {
  const TempDir folder;
  folder.write("state.json", R"({"run_id":"a/b","folder":"/f"})");
  const track::WandbTracker tracker(resumable_config_in(folder),
                                    track::KeptRecords{.last_step = 2});
  EXPECT_NE(tracker.note().find("state.json cannot be read: a new wandb run"),
            std::string::npos)
      << tracker.note();
}

TEST(WandbResume, ACopiedRunFolderBeginsItsOwnRun) {
  const TempDir folder;
  const auto config_of = [&folder](const char* name) {
    track::WandbConfig config = resumable_config_in(folder);
    config.state_file = folder.path() / name / "wandb.json";
    return config;
  };
  fs::create_directory(folder.path() / "a");
  {
    track::WandbTracker tracker(config_of("a"), {});
    record_four_steps(tracker);
    tracker.finish(0);
  }
  const auto first = track::remembered_wandb_run(config_of("a").state_file);
  const std::string bytes = base::read_file(first->log());
  fs::copy(folder.path() / "a", folder.path() / "b");
  track::WandbTracker copied(config_of("b"),
                             track::KeptRecords{.last_step = 2});
  EXPECT_NE(copied.run_id(), first->id);
  EXPECT_NE(copied.note().find("belongs to another run folder"),
            std::string::npos)
      << copied.note();
  copied.record(values(3, "train/loss", 9, 1005));
  copied.finish(0);
  EXPECT_EQ(base::read_file(first->log()), bytes)
      << "the first run was rewritten";
  // From now on the copy has a run of its own, which goes on.
  const track::WandbTracker again(config_of("b"),
                                  track::KeptRecords{.last_step = 3});
  EXPECT_EQ(again.run_id(), copied.run_id());
  EXPECT_EQ(again.note(), "");
}

TEST(WandbResume, AMovedRunFolderGoesOn) {
  const TempDir folder;
  const auto config_at = [&folder](const char* place) {
    track::WandbConfig config = resumable_config_in(folder);
    config.folder = folder.path() / place;
    config.state_file = folder.path() / place / "run" / "wandb.json";
    return config;
  };
  fs::create_directories(folder.path() / "old" / "run");
  std::string id;
  {
    track::WandbTracker tracker(config_at("old"), {});
    record_four_steps(tracker);
    id = tracker.run_id();
  }
  fs::rename(folder.path() / "old", folder.path() / "new");
  for (int time = 0; time < 2; ++time) {
    const track::WandbTracker tracker(config_at("new"),
                                      track::KeptRecords{.last_step = 4});
    EXPECT_EQ(tracker.run_id(), id);
    EXPECT_EQ(tracker.note(), "");
    EXPECT_EQ(tracker.folder().parent_path(), folder.path() / "new" / "wandb");
    EXPECT_EQ(history_of(records_of(tracker.folder())).size(), 3);
  }
  EXPECT_FALSE(fs::exists(folder.path() / "old"));
}

TEST(WandbResume, LatestRunIsTheOneThatGoesOn) {
  const TempDir folder;
  track::WandbConfig other = resumable_config_in(folder);
  other.state_file = "";
  const track::WandbTracker first(resumable_config_in(folder), {});
  const track::WandbTracker second(other, {});
  const fs::path link = folder.path() / "wandb" / "latest-run";
  EXPECT_EQ(fs::read_symlink(link), second.folder().filename());
  const track::WandbTracker resumed(resumable_config_in(folder),
                                    track::KeptRecords{.last_step = 2});
  EXPECT_EQ(fs::read_symlink(link), first.folder().filename());
}

TEST(WandbResume, AnotherIdIsAnotherRun) {
  const TempDir folder;
  track::WandbConfig config = resumable_config_in(folder);
  config.run_id = "one";
  {
    const track::WandbTracker tracker(config, {});
  }
  config.run_id = "two";
  const track::WandbTracker other(config, track::KeptRecords{.last_step = 2});
  EXPECT_EQ(other.run_id(), "two");
  EXPECT_EQ(track::remembered_wandb_run(config.state_file)->id, "two");
}

TEST(WandbResume, ARunThatDoesNotGoOnIsANewOne) {
  const TempDir folder;
  std::string id;
  {
    const track::WandbTracker tracker(resumable_config_in(folder), {});
    id = tracker.run_id();
  }
  EXPECT_NE(track::WandbTracker(resumable_config_in(folder), {}).run_id(), id);
}

TEST(WandbResume, NothingRememberedIsANewRun) {
  const TempDir folder;
  track::WandbConfig config = resumable_config_in(folder);
  config.state_file = "";
  const track::WandbTracker tracker(config, track::KeptRecords{.last_step = 2});
  EXPECT_EQ(tracker.run_id().size(), 8);
}

TEST(WandbResume, NewSettingsAreThoseOfTheRun) {
  const TempDir folder;
  track::WandbConfig config = resumable_config_in(folder);
  config.project = "p";
  config.name = "first";
  config.tags = {"a"};
  config.config_json = R"({"epochs":1,"lr":0.1})";
  {
    const track::WandbTracker tracker(config, {});
  }
  track::WandbConfig now = resumable_config_in(folder, kWandbStart + 50);
  now.tags = {"b"};
  now.config_json = R"({"epochs":2})";
  const track::WandbTracker tracker(now, track::KeptRecords{.last_step = 2});
  const auto records = records_of(tracker.folder());
  const auto& run = records[1].run();
  EXPECT_EQ(run.project(), "p");
  EXPECT_EQ(run.display_name(), "first");
  ASSERT_EQ(run.tags_size(), 1);
  EXPECT_EQ(run.tags(0), "b");
  ASSERT_EQ(run.config().update_size(), 1);
  EXPECT_EQ(run.config().update(0).value_json(), "2");
  EXPECT_EQ(run.start_time().seconds(), 1700000000);
}

TEST(WandbResume, RecordsWithoutARunAreNoRun) {
  EXPECT_FALSE(track::keep_wandb_records({}, {}, {}));
  const std::vector<std::string> records = {track::header_record(1),
                                            "\xff\xff"};
  EXPECT_FALSE(track::keep_wandb_records(records, {}, {}));
}

}  // namespace
}  // namespace lockstep
