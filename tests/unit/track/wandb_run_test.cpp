#include "lockstep/track/wandb_run.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

TEST(WandbRun, IdsAreEightLettersAndDigitsAndDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) {
    const auto id = track::new_wandb_run_id();
    EXPECT_TRUE(std::regex_match(id, std::regex("[a-z0-9]{8}"))) << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 100);
}

TEST(WandbRun, FoldersAreNamedAsWandbNamesThem) {
  const TempDir folder;
  const auto run =
      track::make_wandb_run(folder.path(), "abcd1234", 1.7e9 + 0.5);
  EXPECT_TRUE(run.folder.is_absolute());
  EXPECT_EQ(run.folder.parent_path(), folder.path() / "wandb");
  EXPECT_TRUE(
      std::regex_match(run.folder.filename().string(),
                       std::regex("offline-run-2023111[45]_\\d{4}20-abcd1234")))
      << run.folder;
  EXPECT_EQ(run.log(), run.folder / "run-abcd1234.wandb");
  EXPECT_TRUE(fs::is_directory(run.files()));
}

TEST(WandbRun, LatestRunPointsToTheNewestByItsNameAlone) {
  const TempDir folder;
  track::make_wandb_run(folder.path(), "first", 1.7e9);
  const auto run = track::make_wandb_run(folder.path(), "second", 1.7e9);
  EXPECT_EQ(fs::read_symlink(folder.path() / "wandb" / "latest-run"),
            run.folder.filename());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "wandb"),
                          fs::directory_iterator()),
            3);
}

TEST(WandbRun, ALinkThatCannotBeMadeIsNoError) {
  const TempDir folder;
  fs::create_directories(folder.path() / "wandb" / "latest-run" / "x");
  const auto run = track::make_wandb_run(folder.path(), "a", 1.7e9);
  EXPECT_TRUE(fs::is_directory(run.folder));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "wandb"),
                          fs::directory_iterator()),
            2);
}

TEST(WandbRun, TwoRunsOfOneIdInOneSecondHaveTheirOwnFolders) {
  const TempDir folder;
  const auto one = track::make_wandb_run(folder.path(), "same", 1.7e9);
  const auto two = track::make_wandb_run(folder.path(), "same", 1.7e9);
  EXPECT_NE(one.folder, two.folder);
}

TEST(WandbRun, AFolderThatCannotBeMadeIsAnError) {
  const TempDir folder;
  const auto file = folder.write("file", "");
  EXPECT_THROW(track::make_wandb_run(file, "a", 1.7e9), IoError);
}

TEST(WandbRun, IsRemembered) {
  const TempDir folder;
  const auto state = folder.path() / "wandb.json";
  EXPECT_FALSE(track::remembered_wandb_run(state));
  track::remember_wandb_run(state, {"abc", "/some/folder"});
  const auto run = track::remembered_wandb_run(state);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->id, "abc");
  EXPECT_EQ(run->folder, "/some/folder");
  for (const char* bad :
       {"", "{", "[]", "{\"run_id\":1}", "{\"run_id\":\"a\"}",
        R"({"run_id":"","folder":"/f"})", R"({"run_id":"a/b","folder":"/f"})",
        R"({"run_id":"a\u0000","folder":"/f"})"}) {
    EXPECT_FALSE(track::remembered_wandb_run(folder.write("bad.json", bad)))
        << bad;
  }
}

TEST(WandbRun, IsFoundAgainWhenItWasMovedWithItsRunFolder) {
  const TempDir folder;
  const fs::path old_place = folder.path() / "old";
  fs::create_directories(old_place / "runs" / "a");
  const auto run = track::make_wandb_run(old_place, "abc", 1.7e9);
  folder.write("log", "");
  fs::rename(folder.path() / "log", run.log());
  const fs::path state = old_place / "runs" / "a" / "wandb.json";
  track::remember_wandb_run(state, run);
  EXPECT_FALSE(track::is_copied_wandb_state(state));
  // The run folder alone.
  const fs::path moved = folder.path() / "moved.json";
  fs::rename(state, moved);
  EXPECT_FALSE(track::is_copied_wandb_state(moved));
  EXPECT_EQ(track::remembered_wandb_run(moved)->folder, run.folder);
  // Both.
  fs::rename(moved, state);
  const fs::path new_place = folder.path() / "new";
  fs::rename(old_place, new_place);
  EXPECT_EQ(track::remembered_wandb_run(new_place / "runs" / "a" / "wandb.json")
                ->folder,
            new_place / "wandb" / run.folder.filename());
}

TEST(WandbRun, ACopyOfARunFolderIsKnown) {
  const TempDir folder;
  const auto state_in = [&folder](const char* name) {
    return folder.path() / name / "wandb.json";
  };
  fs::create_directory(folder.path() / "a");
  track::remember_wandb_run(state_in("a"), {"abc", "/some/folder"});
  fs::copy(folder.path() / "a", folder.path() / "b");
  fs::create_directory_symlink("a", folder.path() / "another-name-of-a");
  EXPECT_TRUE(track::is_copied_wandb_state(state_in("b")));
  EXPECT_FALSE(track::is_copied_wandb_state(state_in("a")));
  EXPECT_FALSE(track::is_copied_wandb_state(state_in("another-name-of-a")));
  // The folder at the old place is another run now: b was moved.
  track::remember_wandb_run(state_in("a"), {"def", "/some/folder"});
  EXPECT_FALSE(track::is_copied_wandb_state(state_in("b")));
}

TEST(WandbRun, AStateWithoutItsPlaceIsReadAsItsOwn) {
  const TempDir folder;
  const auto state =
      folder.write("wandb.json", R"({"run_id":"abc","folder":"/f"})");
  EXPECT_EQ(track::remembered_wandb_run(state)->folder, "/f");
  EXPECT_FALSE(track::is_copied_wandb_state(state));
}

TEST(WandbRun, TheSyncCommandCanBeTypedAsItStands) {
  EXPECT_EQ(track::wandb_sync_command("/a/wandb/offline-run-2-x"),
            "wandb sync /a/wandb/offline-run-2-x");
  EXPECT_EQ(track::wandb_sync_command("/my runs/it's"),
            "wandb sync '/my runs/it'\\''s'");
}

}  // namespace
}  // namespace lockstep
