#include "lockstep/track/wandb_run.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/files.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

TEST(WandbRun, IdsAreEightLettersAndDigitsAndDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) {
    const auto id = new_wandb_run_id();
    EXPECT_TRUE(std::regex_match(id, std::regex("[a-z0-9]{8}"))) << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 100);
}

TEST(WandbRun, FoldersAreNamedAsWandbNamesThem) {
  const TempDir folder;
  const auto run = make_wandb_run(folder.path(), "abcd1234", 1.7e9 + 0.5);
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
  make_wandb_run(folder.path(), "first", 1.7e9);
  const auto run = make_wandb_run(folder.path(), "second", 1.7e9);
  EXPECT_EQ(fs::read_symlink(folder.path() / "wandb" / "latest-run"),
            run.folder.filename());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "wandb"),
                          fs::directory_iterator()),
            3);
}

TEST(WandbRun, ALinkThatCannotBeMadeIsNoError) {
  const TempDir folder;
  fs::create_directories(folder.path() / "wandb" / "latest-run" / "x");
  const auto run = make_wandb_run(folder.path(), "a", 1.7e9);
  EXPECT_TRUE(fs::is_directory(run.folder));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "wandb"),
                          fs::directory_iterator()),
            2);
}

TEST(WandbRun, TwoRunsOfOneIdInOneSecondHaveTheirOwnFolders) {
  const TempDir folder;
  const auto one = make_wandb_run(folder.path(), "same", 1.7e9);
  const auto two = make_wandb_run(folder.path(), "same", 1.7e9);
  EXPECT_NE(one.folder, two.folder);
}

TEST(WandbRun, AFolderThatCannotBeMadeIsAnError) {
  const TempDir folder;
  const auto file = folder.write("file", "");
  EXPECT_THROW(make_wandb_run(file, "a", 1.7e9), IoError);
}

TEST(WandbRun, IsRemembered) {
  const TempDir folder;
  const auto state = folder.path() / "wandb.json";
  EXPECT_FALSE(remembered_wandb_run(state));
  remember_wandb_run(state, {"abc", "/some/folder"});
  const auto run = remembered_wandb_run(state);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->id, "abc");
  EXPECT_EQ(run->folder, "/some/folder");
  for (const char* bad :
       {"", "{", "[]", "{\"run_id\":1}", "{\"run_id\":\"a\"}"}) {
    EXPECT_FALSE(remembered_wandb_run(folder.write("bad.json", bad))) << bad;
  }
}

TEST(WandbRun, TheHintCanBeTypedAsItStands) {
  EXPECT_TRUE(wandb_sync_hint("/a/wandb/offline-run-2-x")
                  .ends_with("type: wandb sync /a/wandb/offline-run-2-x"));
  EXPECT_TRUE(
      wandb_sync_hint("/my runs/it's").ends_with("'/my runs/it'\\''s'"));
}

}  // namespace
}  // namespace lockstep
