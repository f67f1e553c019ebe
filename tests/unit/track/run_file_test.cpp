#include "lockstep/track/run_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "lockstep/base/files.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

track::RunInfo read_back(const testing::TempDir& folder) {
  return track::parse_run_info(base::read_file(folder.path() / track::kRunFile))
      .value();
}

TEST(RunFile, SaysWhatTheRunIsAndHowItEnded) {
  const testing::TempDir folder;
  track::RunFile file(
      folder.path(),
      {.recipe = "tiny",
       .num_processes = 2,
       .total_steps = 60,
       .log = "logs/out.log",
       .best = {.name = "val/iou", .better = plot::Direction::kHigher}});
  track::RunInfo info = read_back(folder);
  EXPECT_EQ(info.recipe, "tiny");
  EXPECT_EQ(info.pid, getpid());
  EXPECT_EQ(info.num_processes, 2);
  EXPECT_EQ(info.total_steps, 60);
  EXPECT_GT(info.started, 0);
  EXPECT_EQ(info.log, "logs/out.log");
  EXPECT_EQ(info.best.name, "val/iou");
  EXPECT_EQ(info.best.better, plot::Direction::kHigher);
  EXPECT_FALSE(info.end);
  file.console({.text = "step 60/60\n"});
  file.console({.text = "done; everything is in x\nsecond line\n"});
  file.finish(3);
  info = read_back(folder);
  ASSERT_TRUE(info.end);
  EXPECT_EQ(info.end->exit_code, 3);
  EXPECT_EQ(info.end->last_line, "done; everything is in x");
}

TEST(RunFile, AResumedRunKeepsItsStartAndLosesItsEnd) {
  const testing::TempDir folder;
  const track::RunFile file(folder.path(),
                            {.started = 42, .end = track::RunEnd{}});
  EXPECT_EQ(read_back(folder).started, 42);
  EXPECT_FALSE(read_back(folder).end);
}

TEST(RunFile, DamagedTextsHaveNoInfoAndWrongTypesAreIgnored) {
  for (const char* text : {"", "[]", "{", "3", "\xff"}) {
    EXPECT_FALSE(track::parse_run_info(text)) << text;
  }
  const auto info = track::parse_run_info(
      R"({"recipe": 3, "pid": "x", "started": 1e300, "end": [1]})");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->recipe, "");
  EXPECT_EQ(info->pid, 0);
  EXPECT_EQ(info->started, 0);
  EXPECT_FALSE(info->end);
}

}  // namespace
}  // namespace lockstep
