#include "lockstep/runs/run_summary.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/runs/run_search.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using runs::RunState;

track::RunInfo ended(int code) {
  return {.end = track::RunEnd{.exit_code = code}};
}

TEST(RunState, FollowsTheEndThatWasRecorded) {
  EXPECT_EQ(runs::state_of(ended(0), {}), RunState::kFinished);
  EXPECT_EQ(runs::state_of(ended(130), {}), RunState::kStopped);
  EXPECT_EQ(runs::state_of(ended(143), {}), RunState::kStopped);
  EXPECT_EQ(runs::state_of(ended(1), {}), RunState::kFailed);
  EXPECT_EQ(runs::state_of(ended(0), {.is_locked = true}), RunState::kFinished);
}

TEST(RunState, WithoutAnEndTheLockDecides) {
  const track::RunInfo open;
  EXPECT_EQ(runs::state_of(open, {.is_locked = true}), RunState::kRunning);
  EXPECT_EQ(runs::state_of(open, {}), RunState::kFailed);
  EXPECT_EQ(runs::state_of(std::nullopt, {.is_locked = true}),
            RunState::kRunning);
  EXPECT_EQ(runs::state_of(std::nullopt, {}), RunState::kUnknown);
}

TEST(RunState, ARunOfAnotherMachineLivesWhileItWrites) {
  const track::RunInfo open;
  const runs::StateFacts facts{
      .is_this_host = false, .last_sign = 1000, .now = 1060};
  EXPECT_EQ(runs::state_of(open, facts), RunState::kRunning);
  runs::StateFacts late = facts;
  late.now = 2000;
  EXPECT_EQ(runs::state_of(open, late), RunState::kFailed);
}

TEST(LockTable, ReadsTheKernelsList) {
  const runs::LockTable locks(
      "1: POSIX  ADVISORY  WRITE 10 fe:01:100 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 11 fe:01:101 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 12 fe:01:102 0 EOF\n"
      "3: FLOCK  ADVISORY  READ 13 fe:01:103 0 EOF\nbroken\n4: FLOCK");
  const uint64_t device = 0xfe01;
  EXPECT_TRUE(locks.is_locked({.device = device, .inode = 101}, 0));
  EXPECT_FALSE(locks.is_locked({.device = device + 1, .inode = 101}, 0));
  EXPECT_TRUE(locks.is_locked({.device = device + 1, .inode = 101}, 11));
  for (const uint64_t inode : {100, 102, 103, 104}) {
    EXPECT_FALSE(locks.is_locked({.device = device, .inode = inode}, 0));
  }
}

TEST(LockTable, SeesALockOfThisMachine) {
  const testing::TempDir folder;
  const std::string path = folder.write(".lock", "process 1 on x\n");
  const runs::FolderTree tree(folder.path());
  const auto facts = tree.facts_of(".lock");
  EXPECT_FALSE(runs::LockTable::of_machine().is_locked(*facts, getpid()));
  const base::FileDescriptor file(open(path.c_str(), O_RDWR));
  ASSERT_EQ(flock(file.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(runs::LockTable::of_machine().is_locked(*facts, getpid()));
}

TEST(RunWatcher, SumsARunUp) {
  const testing::TempDir folder;
  fs::create_directory(folder.path() / "a");
  folder.write("a/config.yaml", "# job x\n# recipe: tiny\nlr: 1\n");
  folder.write("a/metrics.jsonl",
               "{\"step\":5,\"train/loss\":0.5,\"perf/samples_per_second\":9}\n"
               "{\"step\":6,\"val/loss\":0.25}\n");
  const runs::FolderTree tree(folder.path());
  runs::RunWatcher watcher("a");
  const int64_t now = base::unix_seconds();
  runs::RunSummary run = watcher.update(tree, runs::LockTable(""), now);
  EXPECT_EQ(run.info.recipe, "tiny");
  EXPECT_EQ(run.state, RunState::kUnknown);
  EXPECT_EQ(run.step, 6);
  EXPECT_EQ(run.loss, 0.5);
  EXPECT_EQ(run.best->value, 0.25);
  EXPECT_GT(run.last_sign, 0);
  folder.write("a/run.json",
               R"({"recipe":"tiny","log":"../../etc/passwd","end":)"
               R"({"exit_code":130,"last_line":"stopped by Ctrl-C"}})");
  run = watcher.update(tree, runs::LockTable(""), now);
  EXPECT_EQ(run.state, RunState::kStopped);
  EXPECT_EQ(run.reason, "stopped by Ctrl-C");
}

TEST(RunVerdict, IsReadAsTheLauncherLeftIt) {
  const runs::RunVerdict verdict = runs::parse_verdict(
      R"({"cause":"stall","evidence":"rank 1\u001b[2J","next":"lockstep board"})");
  EXPECT_EQ(verdict.cause, "stall");
  EXPECT_EQ(verdict.evidence, "rank 1\\x1b[2J");
  EXPECT_EQ(verdict.next, "lockstep board");
  EXPECT_EQ(verdict.meaning, "");
  for (const char* text : {"", "{", "[]", R"({"cause":7})"}) {
    EXPECT_EQ(runs::parse_verdict(text).cause, "") << text;
  }
}

TEST(FindRuns, FindsRunFoldersAndNothingInsideOfThem) {
  const testing::TempDir folder;
  for (const char* name : {"a/samples", "b/c/d", "left", ".hidden", "e"}) {
    fs::create_directories(folder.path() / name);
  }
  folder.write("a/metrics.jsonl", "");
  folder.write("a/samples/metrics.jsonl", "");
  folder.write("b/c/d/run.json", "{}");
  folder.write("left/config.yaml", "lr: 1\n");
  folder.write(".hidden/metrics.jsonl", "");
  folder.write("e/config.yaml", "# recipe: tiny\n");
  fs::create_directory_symlink("a", folder.path() / "link");
  const runs::FoundRuns found =
      runs::find_runs(runs::FolderTree(folder.path()));
  EXPECT_EQ(found.ids, (std::vector<std::string>{"a", "b/c/d", "e"}));
  EXPECT_TRUE(found.is_complete);
  EXPECT_EQ(runs::find_runs(runs::FolderTree(folder.path() / "a")).ids,
            std::vector<std::string>{"."});
}

}  // namespace
}  // namespace lockstep
